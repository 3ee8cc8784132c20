#pragma once

#include <deque>
#include <utility>

namespace taas {

/// Events that come up while one is being handled wait their turn, so the logic sees them one after the other.
template <class Event>
class EventQueue {
 public:
  template <class Handle>
  void feed(Event event, Handle handle) {
    pending_.push_back(std::move(event));
    if (busy_) return;
    busy_ = true;
    while (!pending_.empty()) {
      Event next = std::move(pending_.front());
      pending_.pop_front();
      handle(next);
    }
    busy_ = false;
  }

 private:
  std::deque<Event> pending_;
  bool busy_ = false;
};

}  // namespace taas
