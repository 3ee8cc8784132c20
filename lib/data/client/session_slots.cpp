#include "data/client/session_slots.hpp"

#include "data/client/client_state.hpp"

namespace taas::data {

/// The worker may still be writing into slots that it was given.
SessionSlots::~SessionSlots() {
  for (const auto& [attempt, slot] : slots_) {
    if (is_here_) client_.pool.abandon(*slot);
  }
}

Result<Slot*> SessionSlots::take_own(Attempt attempt, std::size_t bytes) {
  auto slot = take(attempt, bytes, SlotMemory::kOwn);
  if (!slot) return slot.error();
  if (!*slot) return nullptr;
  return (slots_[attempt] = std::move(*slot)).get();
}

Result<std::uint32_t> SessionSlots::give(Attempt attempt, std::size_t bytes) {
  auto slot = take(attempt, bytes, SlotMemory::kShared);
  if (!slot) return slot.error();
  if (!*slot) return kNoSlot;
  offer(*slot);
  const auto number = (*slot)->number();
  slots_[attempt] = std::move(*slot);
  return number;
}

std::shared_ptr<Slot> SessionSlots::extract(Attempt attempt) {
  auto held = slots_.extract(attempt);
  return held ? std::move(held.mapped()) : nullptr;
}

/// The second look comes after the bell was asked to ring, so that no room is missed. Only payloads in the socket stand
/// in each other's way: shared slots are filled in any order.
Result<std::shared_ptr<Slot>> SessionSlots::take(Attempt attempt, std::size_t bytes, SlotMemory memory) {
  for (const bool again : {false, true}) {
    const auto look = again && memory == SlotMemory::kOwn ? ClaimScope::kThorough : ClaimScope::kQuick;
    const auto claim = client_.claim(worker_, attempt, look);
    if (!claim.wanted) break;
    auto slot = client_.pool.take(bytes, memory, claim.room);
    if (!slot || *slot) return slot;
    if (!again) client_.bell->wait(wakeup_);
  }
  return std::shared_ptr<Slot>();
}

void SessionSlots::offer(const std::shared_ptr<Slot>& slot) {
  forget_arenas();
  if (!offered_slots_.insert(slot->number()).second) return;
  const bool is_new = offered_arenas_.insert(slot->arena()).second;
  const SlotPlace where{.arena = slot->arena(),
                        .arena_bytes = slot->arena_bytes(),
                        .offset = slot->offset(),
                        .bytes = slot->bytes().size()};
  writer_.push({.header = {.kind = FrameKind::kSlotOffer,
                           .flags = is_new ? kDescriptor : std::uint16_t{0},
                           .slot = slot->number()},
                .description = encode(where),
                .buffers = {},
                .keep = slot,
                .descriptor = is_new ? &slot->memory() : nullptr});
}

/// The worker lets go of memory that is not used any more.
void SessionSlots::forget_arenas() {
  for (const auto arena : client_.pool.forgotten(forgotten_)) {
    ++forgotten_;
    if (offered_arenas_.erase(arena) > 0) writer_.push(frame_of({.kind = FrameKind::kSlotForget, .value = arena}));
  }
}

void SessionSlots::give_wanted() {
  for (auto wanted = wanted_.begin(); wanted != wanted_.end();) {
    wanted = serve(wanted->first, wanted->second) ? wanted_.erase(wanted) : std::next(wanted);
  }
}

bool SessionSlots::serve(Attempt attempt, std::size_t bytes) {
  const auto given = give(attempt, bytes);
  if (!given) {
    client_.arrived(worker_, attempt, Undeliverable{given.error().message});
    writer_.push(frame_of({.kind = FrameKind::kWithdraw, .attempt = attempt}));
    return true;
  }
  if (*given == kNoSlot) return !client_.claim(worker_, attempt, ClaimScope::kQuick).wanted;
  writer_.push(frame_of({.kind = FrameKind::kSlot, .attempt = attempt, .slot = *given}));
  return true;
}

}  // namespace taas::data
