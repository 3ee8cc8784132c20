#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

#include "data/server/server.hpp"
#include "data/transport/handshake.hpp"
#include "data/transport/wakeup.hpp"
#include "data/wire/frame_writer.hpp"

namespace taas::data {

/// A job of a link that has not been answered.
struct OpenJob {
  std::uint32_t slot = kNoSlot;  ///< what the client has set aside for it
  bool withdrawn = false;
  std::optional<Instant> begun = {};
  bool announced = false;  ///< the client knows that it was begun
  bool told = false;       ///< the client is to know before that
};

/// A data worker's connection to one client. Owns a thread, which ends with the connection.
class ServerLink {
 public:
  ServerLink(Server::State& server, std::uint64_t number, Fd socket, AddressFamily family);
  ~ServerLink();
  ServerLink(const ServerLink&) = delete;
  ServerLink& operator=(const ServerLink&) = delete;

  /// An error where the system starts no thread.
  Result<> start();
  void stop();
  /// Ends the connection without waiting for its thread.
  void turn_away();
  /// With the server's mutex.
  void post(OutFrame answer);
  [[nodiscard]] std::uint64_t number() const { return number_; }

  // The server's, under its mutex.
  std::vector<OutFrame> answers;
  std::unordered_map<Attempt, OpenJob> jobs;
  std::atomic<bool> is_awaited = false;  ///< somebody waits until all answers are sent

 private:
  friend class ServerSession;
  void run();
  void serve();
  void tell_refusal(const Error& why);

  Server::State& server_;
  std::uint64_t number_;
  Fd socket_;
  AddressFamily family_;
  Wakeup wakeup_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace taas::data
