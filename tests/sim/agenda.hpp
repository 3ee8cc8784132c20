#pragma once

#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "base/clock.hpp"

namespace taas::sim {

/// Virtual time: what is to happen, in order. What falls on the same instant happens in the order of its entry.
class Agenda {
 public:
  explicit Agenda(Instant start) : now_(start) {}

  [[nodiscard]] Instant now() const { return now_; }
  void after(Duration delay, std::function<void()> what) { at(now_ + std::max(delay, Duration{}), std::move(what)); }
  void at(Instant when, std::function<void()> what) {
    entries_.push({std::max(when, now_), entered_++, std::move(what)});
  }
  /// Does what comes next; false when there is nothing.
  bool step() {
    if (entries_.empty()) return false;
    now_ = entries_.top().when;
    auto what = std::move(const_cast<Entry&>(entries_.top()).what);  // its place in the order stays
    entries_.pop();
    what();
    return true;
  }

 private:
  struct Entry {
    Instant when;
    std::uint64_t number;
    std::function<void()> what;
    bool operator<(const Entry& other) const { return std::pair(other.when, other.number) < std::pair(when, number); }
  };

  Instant now_;
  std::uint64_t entered_ = 0;
  std::priority_queue<Entry> entries_;
};

}  // namespace taas::sim
