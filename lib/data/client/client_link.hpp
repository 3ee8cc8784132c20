#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "data/client/client.hpp"
#include "data/transport/handshake.hpp"
#include "data/transport/wakeup.hpp"

namespace taas::data {

struct SendTask {
  Attempt attempt = 0;
  Task task;
  std::string definition;  ///< its digest
  std::shared_ptr<const std::string> payload;
  std::size_t expected_bytes = 0;  ///< of the batch, 0: not known
  bool told = false;               ///< Assign::told
};
struct SendWithdraw {
  Attempt attempt = 0;
};
using LinkOrder = std::variant<SendTask, SendWithdraw>;

/// A client's connection to one data worker, made again whenever it breaks. Owns a thread.
class ClientLink {
 public:
  ClientLink(Client::State& client, WorkerIndex worker, WorkerAddress address);
  ~ClientLink();
  ClientLink(const ClientLink&) = delete;
  ClientLink& operator=(const ClientLink&) = delete;

  /// With the client's mutex. Where the system starts no thread, that is the refusal().
  void start();
  /// Ends the connection and the thread.
  void stop();

  /// With the client's mutex.
  void post(LinkOrder order);

  [[nodiscard]] const WorkerAddress& address() const { return address_; }

  // With the client's mutex.
  std::vector<LinkOrder> take_orders() { return std::exchange(orders_, {}); }
  void come_up();
  /// Whether it was up.
  bool go_down();
  [[nodiscard]] bool is_up() const { return up_; }
  /// A handshake has failed. True: this was the last one that was needed to know that the worker cannot be used.
  bool refuse(const Error& why);
  /// Why this worker cannot be used at all; empty: it can, or may come.
  [[nodiscard]] const std::string& refusal() const { return refusal_; }
  /// There is no worker at this place of the list any more.
  [[nodiscard]] bool has_left() const { return address_.address.empty() && address_.unix_path.empty(); }

 private:
  friend class ClientSession;
  void run();
  bool serve(std::unique_ptr<Transport> transport);
  Result<std::unique_ptr<Transport>> connect();
  Result<std::unique_ptr<Transport>> connect_by(AddressFamily family);

  Client::State& client_;
  WorkerIndex worker_;
  WorkerAddress address_;
  std::shared_ptr<Wakeup> wakeup_ = std::make_shared<Wakeup>();
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
  AddressFamily family_ = AddressFamily::kTcp;

  // Under the client's mutex.
  std::vector<LinkOrder> orders_;
  bool up_ = false;
  int refusals_ = 0;  // handshakes in a row that showed no worker of this run
  std::string refusal_;
};

}  // namespace taas::data
