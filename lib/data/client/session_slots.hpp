#pragma once

#include <map>
#include <memory>
#include <set>
#include <unordered_map>

#include "data/client/client_link.hpp"
#include "data/wire/frame_writer.hpp"

namespace taas::data {

/// The memory that one worker's batches come into: received from the socket, or written by a worker on this machine,
/// which is told of its slots. Of the link's thread.
class SessionSlots {
 public:
  SessionSlots(Client::State& client, WorkerIndex worker, bool is_here, std::shared_ptr<Wakeup> wakeup,
               FrameWriter& writer)
      : client_(client), worker_(worker), is_here_(is_here), wakeup_(std::move(wakeup)), writer_(writer) {}
  ~SessionSlots();
  SessionSlots(const SessionSlots&) = delete;
  SessionSlots& operator=(const SessionSlots&) = delete;

  /// For a payload in the socket. nullptr: there is no room, or nobody wants the attempt any more.
  Result<Slot*> take_own(Attempt attempt, std::size_t bytes);
  /// For a worker on this machine, which is told of the memory: the slot's number, kNoSlot when there is no room now.
  /// An error: there will not be any.
  Result<std::uint32_t> give(Attempt attempt, std::size_t bytes);
  /// What the attempt has, which is its no more; null: nothing.
  std::shared_ptr<Slot> extract(Attempt attempt);
  void erase(Attempt attempt) { slots_.erase(attempt); }

  /// A worker on this machine wants so much for an attempt: it is given when there is room.
  void want(Attempt attempt, std::size_t bytes) { wanted_[attempt] = bytes; }
  void want_no_more(Attempt attempt) { wanted_.erase(attempt); }
  [[nodiscard]] bool is_wanted() const { return !wanted_.empty(); }
  void give_wanted();

 private:
  Result<std::shared_ptr<Slot>> take(Attempt attempt, std::size_t bytes, SlotMemory memory);
  void offer(const std::shared_ptr<Slot>& slot);
  void forget_arenas();
  /// Whether the attempt has what it wants, or needs no more.
  bool serve(Attempt attempt, std::size_t bytes);

  Client::State& client_;
  WorkerIndex worker_;
  bool is_here_;
  std::shared_ptr<Wakeup> wakeup_;
  FrameWriter& writer_;

  std::unordered_map<Attempt, std::shared_ptr<Slot>> slots_;  // what is being received or written into
  std::map<Attempt, std::size_t> wanted_;                     // no room was there for these yet
  std::set<std::uint32_t> offered_slots_;
  std::set<std::uint32_t> offered_arenas_;
  std::size_t forgotten_ = 0;  // so many arenas of the pool's list
};

}  // namespace taas::data
