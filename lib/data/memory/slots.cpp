#include "data/memory/slots.hpp"

#include <fmt/format.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "data/memory/slot_stock.hpp"

namespace taas::data {

namespace {

double megabytes(std::size_t bytes) { return static_cast<double>(bytes) / 1e6; }

}  // namespace

/// Shared by a pool and all slots that are in somebody's hands.
struct SlotPool::State {
  explicit State(std::size_t budget_bytes) : stock(budget_bytes) {}

  void tell_of_room();

  const pid_t process = ::getpid();
  mutable std::mutex mutex;
  SlotStock stock;
  std::function<void()> on_room;
};

void SlotPool::State::tell_of_room() {
  std::function<void()> call;
  {
    const std::lock_guard lock(mutex);
    call = on_room;
  }
  if (call) call();
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
  if (slot) {
    if (!stock.may_take(*slot) && room == Room::kWithinBudget) return std::shared_ptr<Slot>();
    stock.take(*slot);
  } else {
    if (!stock.make_room(size, dropped) && room == Room::kWithinBudget) return std::shared_ptr<Slot>();
    const auto count = stock.slots_to_make(size);
    stock.reserve(size, count);
    lock.unlock();
    auto arena = Arena::make(memory, size, count);
    lock.lock();
    if (!arena) {
      stock.cancel_reservation(size, count);
      return arena.error();
    }
    slot = stock.add(std::move(*arena));
  }
  return std::shared_ptr<Slot>(slot, [owner = state_](Slot* done) {
    if (::getpid() != owner->process) return;  // a forked child has a copy of the lock, perhaps locked
    std::unique_ptr<Arena> unused;
    {
      const std::lock_guard guard(owner->mutex);
      unused = owner->stock.take_back(*done);
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
