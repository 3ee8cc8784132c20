#include "data/memory/slots.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "data/memory/slot_pool_state.hpp"

namespace taas::data {

namespace {

constexpr std::size_t kArenaBytes = std::size_t{16} << 20;
constexpr std::size_t kMostSlotsOfArena = 64;
/// So many free slots are kept even when the budget is used up: what the loop lets go is needed again as soon as it has
/// taken the next batch. Until then they stay empty.
constexpr std::size_t kSpareSlots = 2;

double megabytes(std::size_t bytes) { return static_cast<double>(bytes) / 1e6; }

}  // namespace

/// The one that was used last, whose pages are still in the cache.
Slot* SlotPool::State::find_free(std::size_t bytes, SlotMemory memory) const {
  const auto fitting = std::find_if(free.rbegin(), free.rend(), [&](const Slot* slot) {
    return slot->arena_->kind == memory && slot->bytes_.size() >= bytes && slot->bytes_.size() / 2 <= slot_size(bytes);
  });
  return fitting == free.rend() ? nullptr : *fitting;
}

void SlotPool::State::take(Slot& slot) {
  free.erase(std::next(std::find(free.rbegin(), free.rend(), &slot)).base());
  slot.use_ = Slot::Use::kTaken;
  taken += slot.bytes_.size();
  --slot.arena_->free;
}

/// Lets free slots of other sizes go until so many bytes fit into the budget.
bool SlotPool::State::make_room(std::size_t bytes, std::vector<std::unique_ptr<Arena>>& dropped) {
  while (held + bytes > budget) {
    const auto unused = std::find_if(arenas.begin(), arenas.end(), [](const auto& entry) {
      return entry.second->free == entry.second->slots.size();
    });
    if (unused == arenas.end()) return false;
    dropped.push_back(remove(*unused->second));
  }
  return true;
}

std::size_t SlotPool::State::slots_to_make(std::size_t slot_bytes) const {
  const auto room = budget > held ? budget - held : 0;
  return std::clamp<std::size_t>(std::min({kArenaBytes, budget / 8, room}) / slot_bytes, 1, kMostSlotsOfArena);
}

/// All of its slots are free. Returns one of them.
Slot* SlotPool::State::add(std::unique_ptr<Arena> arena) {
  arena->number = next_arena++;
  for (const auto& slot : arena->slots) {
    slot->number_ = next_slot++;
    free.push_back(slot.get());
  }
  arenas.emplace(arena->number, std::move(arena));
  return free.back();
}

void SlotPool::State::give_away(Slot& slot) {
  auto& arena = *slot.arena_;
  slot.use_ = Slot::Use::kGivenAway;
  held -= slot.bytes_.size();
  taken -= slot.bytes_.size();
  given += slot.bytes_.size();
  ++arena.given;
  // A program that keeps everything would use up the descriptors.
  if (arena.kind == SlotMemory::kShared && given > budget && arena.given == arena.slots.size()) {
    arena.retired = true;
    arena.memory.reset();
    forgotten.push_back(arena.number);
  }
}

std::unique_ptr<Arena> SlotPool::State::take_back(Slot& slot) {
  auto& arena = *slot.arena_;
  if (slot.use_ == Slot::Use::kGivenAway) {
    given -= slot.bytes_.size();
    --arena.given;
    if (!arena.retired && !slot.abandoned_) held += slot.bytes_.size();
  } else if (!slot.abandoned_ && !arena.retired) {
    taken -= slot.bytes_.size();
  }
  slot.use_ = Slot::Use::kFree;
  ++arena.free;
  const bool all_free = arena.free == arena.slots.size();
  const bool too_much = held > budget && free.size() >= kSpareSlots;
  if (!arena.retired && !slot.abandoned_) free.push_back(&slot);
  return all_free && (arena.retired || slot.abandoned_ || too_much) ? remove(arena) : nullptr;
}

std::unique_ptr<Arena> SlotPool::State::remove(Arena& arena) {
  std::erase_if(free, [&](const Slot* slot) { return slot->arena_ == &arena; });
  if (!arena.retired) {
    forgotten.push_back(arena.number);
    for (const auto& slot : arena.slots) held -= slot->abandoned_ ? 0 : slot->bytes_.size();
  }
  return std::move(arenas.extract(arena.number).mapped());
}

void SlotPool::State::tell_of_room() {
  std::function<void()> call;
  {
    const std::lock_guard lock(mutex);
    call = on_room;
  }
  if (call) call();
}

SlotPool::SlotPool(std::size_t budget_bytes) : state_(std::make_shared<State>()) { state_->budget = budget_bytes; }

Result<std::shared_ptr<Slot>> SlotPool::take(std::size_t bytes, SlotMemory memory, Room room) {
  auto& state = *state_;
  const auto size = slot_size(bytes);
  if (bytes > state.budget) {
    return usage_error(fmt::format("a batch of {:.1f} MB does not fit into --data-buffer of {:.1f} MB",
                                   megabytes(bytes), megabytes(state.budget)));
  }
  std::vector<std::unique_ptr<Arena>> dropped;  // outlives the lock
  std::unique_lock lock(state.mutex);
  auto* slot = state.find_free(bytes, memory);
  if (!state.resting.empty() && (!slot || state.taken + slot->bytes().size() > state.budget)) {
    state.collect(dropped);
    slot = state.find_free(bytes, memory);
    state.pressed = state.pressed || !slot;
  }
  if (slot) {
    const bool fits = state.taken + slot->bytes().size() <= state.budget;
    if (!fits && room == Room::kWithinBudget) return std::shared_ptr<Slot>();
  } else {
    if (!state.make_room(size, dropped) && room == Room::kWithinBudget) return std::shared_ptr<Slot>();
    const auto count = state.slots_to_make(size);
    const auto copier = state.copier;
    state.held += size * count;
    lock.unlock();
    auto arena = Arena::make(memory, size, count);
    if (arena) (*arena)->pin(copier);
    lock.lock();
    if (!arena) {
      state.held -= size * count;
      return arena.error();
    }
    if (copier != state.copier) (*arena)->pin(state.copier);
    slot = state.add(std::move(*arena));
  }
  state.take(*slot);
  return std::shared_ptr<Slot>(slot, [owner = state_](Slot* done) {
    if (::getpid() != owner->process) return;  // a forked child has a copy of the lock, perhaps locked
    std::unique_ptr<Arena> unused;
    {
      const std::lock_guard guard(owner->mutex);
      unused = owner->let_go(*done);
    }
    owner->tell_of_room();
  });
}

void SlotPool::give_away(Slot& slot) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->give_away(slot);
  }
  state_->tell_of_room();
}

void SlotPool::abandon(Slot& slot) {
  const std::lock_guard lock(state_->mutex);
  if (slot.abandoned_ || slot.use_ != Slot::Use::kTaken) return;
  slot.abandoned_ = true;
  state_->held -= slot.bytes_.size();
  state_->taken -= slot.bytes_.size();
}

int SlotPool::fitting(std::size_t bytes) const {
  const auto count = state_->budget / slot_size(bytes);
  return static_cast<int>(std::clamp<std::size_t>(count, 4, 1 << 20) - 2);
}

std::size_t SlotPool::held_bytes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->held;
}

std::size_t SlotPool::budget_bytes() const { return state_->budget; }

std::vector<std::uint32_t> SlotPool::forgotten(std::size_t seen) const {
  const std::lock_guard lock(state_->mutex);
  const auto begin = state_->forgotten.begin() + static_cast<std::ptrdiff_t>(std::min(seen, state_->forgotten.size()));
  return {begin, state_->forgotten.end()};
}

void SlotPool::on_room(std::function<void()> call) {
  const std::lock_guard lock(state_->mutex);
  state_->on_room = std::move(call);
}

}  // namespace taas::data
