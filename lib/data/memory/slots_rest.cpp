// Slots that a device may still read when the program has let go of them.
#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "data/memory/slot_pool_state.hpp"

namespace taas::data {

namespace {

/// When slots of this part of the budget rest, it is worth asking the device.
constexpr std::size_t kEnoughToMark = 16;
/// A device that does not finish its copies in this time never will.
constexpr Duration kLastPatience = std::chrono::seconds(5);
constexpr Duration kLastLook = std::chrono::milliseconds(1);

}  // namespace

std::unique_ptr<Arena> SlotPool::State::let_go(Slot& slot) {
  const bool may_be_read = slot.use_ == Slot::Use::kGivenAway && slot.is_pinned();
  if (!may_be_read) return take_back(slot);
  rest(slot);
  return nullptr;
}

void SlotPool::State::rest(Slot& slot) {
  auto& arena = *slot.arena_;
  slot.use_ = Slot::Use::kResting;
  given -= slot.bytes_.size();
  --arena.given;
  if (!arena.retired) {
    held += slot.bytes_.size();
    taken += slot.bytes_.size();
  }
  resting.add(slot, slot.bytes_.size());
}

bool SlotPool::State::collect(std::vector<std::unique_ptr<Arena>>& dropped) {
  const auto passed = resting.take_passed();
  for (auto* slot : passed) {
    if (auto unused = take_back(*slot)) dropped.push_back(std::move(unused));
  }
  return !passed.empty();
}

void SlotPool::use(std::shared_ptr<Copier> copier) {
  const std::lock_guard lock(state_->mutex);
  if (state_->copier) return;
  state_->copier = std::move(copier);
  for (const auto& [number, arena] : state_->arenas) arena->pin(state_->copier);
}

void SlotPool::settle() {
  auto& state = *state_;
  std::vector<std::unique_ptr<Arena>> dropped;  // outlives the lock
  bool some = false;
  {
    const std::lock_guard lock(state.mutex);
    if (!state.copier || state.resting.empty()) return;
    state.resting.mark(*state.copier, state.budget / kEnoughToMark, std::exchange(state.pressed, false));
    some = state.collect(dropped);
  }
  if (some) state.tell_of_room();
}

/// Copies may be under way still. Memory whose copies never end is never unmapped, nor is anything in a forked child:
/// the device is the parent's.
SlotPool::State::~State() {
  const bool is_here = ::getpid() == process;
  const auto deadline = steady_now() + kLastPatience;
  std::vector<std::unique_ptr<Arena>> dropped;
  while (is_here && !resting.empty() && steady_now() < deadline) {
    resting.mark(*copier, 0, true);
    if (!collect(dropped) && !resting.empty()) std::this_thread::sleep_for(kLastLook);
  }
  if (is_here && resting.empty()) return;
  for (auto& [number, arena] : arenas) static_cast<void>(arena.release());
}

}  // namespace taas::data
