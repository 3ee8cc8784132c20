#include "data/memory/slots.hpp"

#include <fmt/format.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "data/memory/resting_slots.hpp"
#include "data/memory/slot_stock.hpp"

namespace taas::data {

namespace {

/// When slots of this part of the budget rest, it is worth asking the device.
constexpr std::size_t kEnoughToMark = 16;
/// A device that does not finish its copies in this time never will.
constexpr Duration kLastPatience = std::chrono::seconds(5);
constexpr Duration kLastLook = std::chrono::milliseconds(1);

double megabytes(std::size_t bytes) { return static_cast<double>(bytes) / 1e6; }

}  // namespace

/// Shared by a pool and all slots that are in somebody's hands.
struct SlotPool::State {
  explicit State(std::size_t budget_bytes) : stock(budget_bytes) {}
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  /// The arena is destroyed by the caller, who does not hold the mutex then.
  std::unique_ptr<Arena> let_go(Slot& slot);
  /// Takes back what has rested. True: there was something.
  bool collect(std::vector<std::unique_ptr<Arena>>& dropped);
  void tell_of_room();

  pid_t process = ::getpid();
  mutable std::mutex mutex;
  SlotStock stock;
  RestingSlots resting;
  bool pressed = false;  // somebody wanted a slot, and there was none but resting ones
  std::shared_ptr<Copier> copier;
  std::function<void()> on_room;
};

std::unique_ptr<Arena> SlotPool::State::let_go(Slot& slot) {
  if (!SlotStock::must_rest(slot)) return stock.take_back(slot);
  stock.rest(slot);
  resting.add(slot, slot.bytes().size());
  return nullptr;
}

bool SlotPool::State::collect(std::vector<std::unique_ptr<Arena>>& dropped) {
  const auto passed = resting.take_passed();
  for (auto* slot : passed) {
    if (auto unused = stock.take_back(*slot)) dropped.push_back(std::move(unused));
  }
  return !passed.empty();
}

void SlotPool::State::tell_of_room() {
  std::function<void()> call;
  {
    const std::lock_guard lock(mutex);
    call = on_room;
  }
  if (call) call();
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
  if (!is_here || !resting.empty()) stock.leak();
}

SlotPool::SlotPool(std::size_t budget_bytes) : state_(std::make_shared<State>(budget_bytes)) {}

Result<std::shared_ptr<Slot>> SlotPool::take(std::size_t bytes, SlotMemory memory, Room room) {
  auto& state = *state_;
  auto& stock = state.stock;
  const auto size = slot_size(bytes);
  if (bytes > stock.budget()) {
    return usage_error(fmt::format("a batch of {:.1f} MB does not fit into --data-buffer of {:.1f} MB",
                                   megabytes(bytes), megabytes(stock.budget())));
  }
  std::vector<std::unique_ptr<Arena>> dropped;  // outlives the lock
  std::unique_lock lock(state.mutex);
  auto* slot = stock.find_free(bytes, memory);
  if (!state.resting.empty() && (!slot || !stock.may_take(*slot))) {
    state.collect(dropped);
    slot = stock.find_free(bytes, memory);
    state.pressed = state.pressed || !slot;
  }
  if (slot) {
    if (!stock.may_take(*slot) && room == Room::kWithinBudget) return std::shared_ptr<Slot>();
    stock.take(*slot);
  } else {
    if (!stock.make_room(size, dropped) && room == Room::kWithinBudget) return std::shared_ptr<Slot>();
    const auto count = stock.slots_to_make(size);
    const auto copier = state.copier;
    stock.reserve(size, count);
    lock.unlock();
    auto arena = Arena::make(memory, size, count);
    if (arena) (*arena)->pin(copier);
    lock.lock();
    if (!arena) {
      stock.cancel_reservation(size, count);
      return arena.error();
    }
    if (copier != state.copier) (*arena)->pin(state.copier);
    slot = stock.add(std::move(*arena));
  }
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
    state_->stock.give_away(slot);
  }
  state_->tell_of_room();
}

void SlotPool::abandon(Slot& slot) {
  const std::lock_guard lock(state_->mutex);
  state_->stock.abandon(slot);
}

void SlotPool::use(std::shared_ptr<Copier> copier) {
  const std::lock_guard lock(state_->mutex);
  if (state_->copier) return;
  state_->copier = std::move(copier);
  state_->stock.pin(state_->copier);
}

void SlotPool::settle() {
  auto& state = *state_;
  std::vector<std::unique_ptr<Arena>> dropped;  // outlives the lock
  bool some = false;
  {
    const std::lock_guard lock(state.mutex);
    if (!state.copier || state.resting.empty()) return;
    state.resting.mark(*state.copier, state.stock.budget() / kEnoughToMark, std::exchange(state.pressed, false));
    some = state.collect(dropped);
  }
  if (some) state.tell_of_room();
}

int SlotPool::fitting(std::size_t bytes) const {
  const auto count = budget_bytes() / slot_size(bytes);
  return static_cast<int>(std::clamp<std::size_t>(count, 4, 1 << 20) - 2);
}

std::size_t SlotPool::held_bytes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->stock.held();
}

std::size_t SlotPool::budget_bytes() const { return state_->stock.budget(); }

std::vector<std::uint32_t> SlotPool::forgotten(std::size_t seen) const {
  const std::lock_guard lock(state_->mutex);
  const auto& all = state_->stock.forgotten();
  return {all.begin() + static_cast<std::ptrdiff_t>(std::min(seen, all.size())), all.end()};
}

void SlotPool::on_room(std::function<void()> call) {
  const std::lock_guard lock(state_->mutex);
  state_->on_room = std::move(call);
}

}  // namespace taas::data
