#include "data/memory/slot_stock.hpp"

#include <algorithm>
#include <utility>

namespace taas::data {

namespace {

constexpr std::size_t kArenaBytes = std::size_t{16} << 20;
constexpr std::size_t kMostSlotsOfArena = 64;
constexpr std::size_t kFirstSlots = 4;  // then as many as there are: the loop's first batch waits until memory is there
/// So many free slots are kept even when the budget is used up: what the loop lets go is needed again as soon as it has
/// taken the next batch. Until then they stay empty.
constexpr std::size_t kSpareSlots = 2;

}  // namespace

Slot* SlotStock::find_free(std::size_t bytes, SlotMemory memory) const {
  const auto fitting = std::find_if(free_.rbegin(), free_.rend(), [&](const Slot* slot) {
    return slot->arena_->kind == memory && slot->bytes_.size() >= bytes && slot->bytes_.size() / 2 <= slot_size(bytes);
  });
  return fitting == free_.rend() ? nullptr : *fitting;
}

void SlotStock::take(Slot& slot) {
  free_.erase(std::next(std::find(free_.rbegin(), free_.rend(), &slot)).base());
  slot.use_ = Slot::Use::kTaken;
  taken_ += slot.bytes_.size();
  --slot.arena_->free;
}

bool SlotStock::make_room(std::size_t bytes, std::vector<std::unique_ptr<Arena>>& dropped) {
  while (held_ + bytes > budget_) {
    const auto unused = std::find_if(arenas_.begin(), arenas_.end(), [](const auto& entry) {
      return entry.second->free == entry.second->slots.size();
    });
    if (unused == arenas_.end()) return false;
    dropped.push_back(remove(*unused->second));
  }
  return true;
}

std::size_t SlotStock::slots_to_make(std::size_t slot_bytes) const {
  const auto room = budget_ > held_ ? budget_ - held_ : 0;
  const auto wanted = std::min({kArenaBytes, budget_ / 8, room, std::max(kFirstSlots * slot_bytes, held_)});
  return std::clamp<std::size_t>(wanted / slot_bytes, 1, kMostSlotsOfArena);
}

void SlotStock::reserve(std::size_t slot_bytes, std::size_t count) {
  held_ += slot_bytes * count;
  taken_ += slot_bytes;
}

void SlotStock::cancel_reservation(std::size_t slot_bytes, std::size_t count) {
  held_ -= slot_bytes * count;
  taken_ -= slot_bytes;
}

Slot* SlotStock::add(std::unique_ptr<Arena> arena) {
  arena->number = next_arena_++;
  for (const auto& slot : arena->slots) {
    slot->number_ = next_slot_++;
    free_.push_back(slot.get());
  }
  arenas_.emplace(arena->number, std::move(arena));
  auto* slot = free_.back();
  taken_ -= slot->bytes_.size();  // it was reserved
  take(*slot);
  return slot;
}

void SlotStock::give_away(Slot& slot) {
  auto& arena = *slot.arena_;
  slot.use_ = Slot::Use::kGivenAway;
  held_ -= slot.bytes_.size();
  taken_ -= slot.bytes_.size();
  given_ += slot.bytes_.size();
  ++arena.given;
  // A program that keeps everything would use up the descriptors.
  if (arena.kind == SlotMemory::kShared && given_ > budget_ && arena.given == arena.slots.size()) {
    arena.retired = true;
    arena.memory.reset();
    forgotten_.push_back(arena.number);
  }
}

void SlotStock::abandon(Slot& slot) {
  if (slot.abandoned_ || slot.use_ != Slot::Use::kTaken) return;
  slot.abandoned_ = true;
  held_ -= slot.bytes_.size();
  taken_ -= slot.bytes_.size();
}

std::unique_ptr<Arena> SlotStock::take_back(Slot& slot) {
  auto& arena = *slot.arena_;
  if (slot.use_ == Slot::Use::kGivenAway) {
    given_ -= slot.bytes_.size();
    --arena.given;
    if (!arena.retired && !slot.abandoned_) held_ += slot.bytes_.size();
  } else if (!slot.abandoned_ && !arena.retired) {
    taken_ -= slot.bytes_.size();
  }
  slot.use_ = Slot::Use::kFree;
  ++arena.free;
  const bool all_free = arena.free == arena.slots.size();
  const bool too_much = held_ > budget_ && free_.size() >= kSpareSlots;
  if (!arena.retired && !slot.abandoned_) free_.push_back(&slot);
  return all_free && (arena.retired || slot.abandoned_ || too_much) ? remove(arena) : nullptr;
}

std::unique_ptr<Arena> SlotStock::remove(Arena& arena) {
  std::erase_if(free_, [&](const Slot* slot) { return slot->arena_ == &arena; });
  if (!arena.retired) {
    forgotten_.push_back(arena.number);
    for (const auto& slot : arena.slots) held_ -= slot->abandoned_ ? 0 : slot->bytes_.size();
  }
  return std::move(arenas_.extract(arena.number).mapped());
}

}  // namespace taas::data
