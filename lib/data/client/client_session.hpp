#pragma once

#include <memory>
#include <string>

#include "data/client/client_link.hpp"
#include "data/client/peer_watch.hpp"
#include "data/client/session_slots.hpp"
#include "data/wire/frame_reader.hpp"
#include "data/wire/frame_writer.hpp"

namespace taas::data {

/// One connection to a data worker, from the proved secret to its end. Of the link's thread.
class ClientSession : public FrameHandler {
 public:
  ClientSession(Client::State& client, ClientLink& link, std::unique_ptr<Transport> transport);
  ~ClientSession() override = default;
  ClientSession(const ClientSession&) = delete;
  ClientSession& operator=(const ClientSession&) = delete;

  /// Until the connection breaks, or the link is stopped (then no error).
  Result<> run();
  [[nodiscard]] bool was_up() const { return was_up_; }

 private:
  Place place(const FrameHeader& header) override;
  Result<> handle(Frame frame) override;

  Result<> turn();
  Result<> watch_peer();
  void wait(bool more);

  void carry_out_orders();
  void carry_out(const SendTask& order);
  void carry_out(const SendWithdraw& order);
  [[nodiscard]] std::string too_large(const SendTask& order) const;
  [[nodiscard]] std::size_t sent_bytes(const Definition& definition) const;

  Result<> handle_ready();
  Result<> handle_batch(const Frame& frame);
  Result<> handle_raised(const Frame& frame);
  Result<> handle_slot_wanted(const FrameHeader& header);
  Result<> send_definition(const std::string& digest);

  Client::State& client_;
  ClientLink& link_;
  WorkerIndex worker_;
  std::unique_ptr<Transport> transport_;
  FrameReader reader_;
  FrameWriter writer_;
  bool is_here_;  ///< the worker is on this machine
  bool was_up_ = false;

  SessionSlots slots_;
  PeerWatch watch_;
};

}  // namespace taas::data
