#include "data/memory/resting_slots.hpp"

#include <utility>

namespace taas::data {

namespace {

constexpr std::size_t kEnoughSlots = 32;

}  // namespace

void RestingSlots::add(Slot& slot, std::size_t bytes) {
  unmarked_.push_back(&slot);
  unmarked_bytes_ += bytes;
}

void RestingSlots::mark(Copier& copier, std::size_t enough_bytes, bool pressed) {
  const bool enough = pressed || unmarked_.size() >= kEnoughSlots || unmarked_bytes_ >= enough_bytes;
  if (unmarked_.empty() || !enough) return;
  auto mark = copier.mark();
  if (!mark) return;
  marked_.push_back({std::move(mark), std::exchange(unmarked_, {})});
  unmarked_bytes_ = 0;
}

/// A later mark covers all that an earlier one does, so the first that has not been passed ends the search.
std::vector<Slot*> RestingSlots::take_passed() {
  std::vector<Slot*> passed;
  while (!marked_.empty() && marked_.front().mark->is_passed()) {
    passed.insert(passed.end(), marked_.front().slots.begin(), marked_.front().slots.end());
    marked_.pop_front();
  }
  return passed;
}

}  // namespace taas::data
