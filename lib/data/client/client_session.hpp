#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>

#include "data/client/client_link.hpp"
#include "data/wire/frame_reader.hpp"
#include "data/wire/frame_writer.hpp"

namespace taas::data {

/// One connection to a data worker, from the proved secret to its end. Of the link's thread.
class ClientSession : public FrameHandler {
 public:
  ClientSession(Client::State& client, ClientLink& link, std::unique_ptr<Transport> transport);
  ~ClientSession() override;
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
  void offer(const std::shared_ptr<Slot>& slot);
  void forget_arenas();

  Result<> handle_ready();
  Result<> handle_batch(const Frame& frame);
  Result<> handle_raised(const Frame& frame);
  Result<> handle_slot_wanted(const FrameHeader& header);
  Result<> send_definition(const std::string& digest);
  Result<bool> give_slot(Attempt attempt, std::size_t bytes);
  /// Null: there is no room, or nobody wants the attempt any more.
  Result<std::shared_ptr<Slot>> take_slot(Attempt attempt, std::size_t bytes, SlotMemory memory);
  void give_waiting_slots();
  std::shared_ptr<const std::string> remember(std::string_view description);
  void push(const FrameHeader& header, std::string description = {});

  Client::State& client_;
  ClientLink& link_;
  WorkerIndex worker_;
  std::unique_ptr<Transport> transport_;
  FrameReader reader_;
  FrameWriter writer_;
  bool is_here_;  ///< the worker is on this machine
  bool was_up_ = false;

  std::unordered_map<Attempt, std::shared_ptr<Slot>> slots_;  ///< what is being received or written into
  std::map<Attempt, std::size_t> wanted_slots_;               ///< no room was there for these yet
  std::set<std::uint32_t> offered_slots_;
  std::set<std::uint32_t> offered_arenas_;
  std::size_t forgotten_ = 0;  ///< so many arenas of the pool's list

  std::shared_ptr<const std::string> description_;
  Instant last_ping_;
  int unanswered_ = 0;  ///< pings since the last byte
  std::uint64_t heard_ = 0;
};

}  // namespace taas::data
