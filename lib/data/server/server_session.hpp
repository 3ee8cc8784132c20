#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>

#include "data/memory/slot_copy.hpp"
#include "data/memory/slot_map.hpp"
#include "data/server/server_link.hpp"
#include "data/wire/frame_reader.hpp"
#include "data/wire/frame_writer.hpp"

namespace taas::data {

/// One connection to a client, from the proved secret to its end. Of the link's thread.
class ServerSession : public FrameHandler {
 public:
  ServerSession(Server::State& server, ServerLink& link, std::unique_ptr<Transport> transport);

  /// Until the connection breaks, or the link is stopped (then no error).
  Result<> run();

 private:
  Place place(const FrameHeader& header) override;
  Result<> handle(Frame frame) override;

  Result<> turn();
  void wait(bool more);
  void send_answers();
  void send(OutFrame answer);
  void send_in_slot(OutFrame answer, std::uint32_t slot);
  void copy_into_slots();

  Result<> handle_hello(const FrameHeader& header);
  Result<> handle_definition(Frame frame);
  Result<> handle_task(const Frame& frame);
  Result<> handle_slot_offer(const Frame& frame);
  void handle_slot(const FrameHeader& header);
  void handle_withdraw(Attempt attempt);
  void push(const FrameHeader& header);

  Server::State& server_;
  ServerLink& link_;
  std::unique_ptr<Transport> transport_;
  FrameReader reader_;
  FrameWriter writer_;
  SlotMap slots_;
  std::map<Attempt, OutFrame> parked_;  ///< batches that wait for a larger slot
  struct Copying {
    OutFrame answer;  ///< owns what is copied
    SlotCopy copy;
  };
  std::deque<Copying> copies_;
  bool was_greeted_ = false;
  Instant heard_at_;
  std::uint64_t heard_ = 0;
};

}  // namespace taas::data
