#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "data/memory/copier.hpp"

namespace taas::data {

class Slot;

/// Slots that the program has let go of while copies out of them may be under way. A mark is worth many slots: it asks
/// every stream of the device.
class RestingSlots {
 public:
  void add(Slot& slot, std::size_t bytes);
  /// What came since the last mark gets one, if there is so much of it that this pays, or if `pressed`.
  void mark(Copier& copier, std::size_t enough_bytes, bool pressed);
  /// Those whose copies are done: they rest no more.
  std::vector<Slot*> take_passed();
  [[nodiscard]] bool empty() const { return unmarked_.empty() && marked_.empty(); }

 private:
  struct Marked {
    std::unique_ptr<CopyMark> mark;
    std::vector<Slot*> slots;
  };
  std::vector<Slot*> unmarked_;
  std::size_t unmarked_bytes_ = 0;
  std::deque<Marked> marked_;  ///< in the order of their marks
};

}  // namespace taas::data
