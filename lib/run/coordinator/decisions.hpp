#pragma once

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "run/coordinator/coordinator_events.hpp"

namespace taas::run {

/// What the parts of the coordinator decide on the event at hand, in order, and what they report to the Supervisor.
class Decisions {
 public:
  /// The next event: time never goes back.
  void begin(Instant at) { now_ = std::max(now_, at); }
  [[nodiscard]] Instant now() const { return now_; }

  void emit(CoordinatorAction action) { actions_.push_back(std::move(action)); }
  void notify(std::string text) { emit(Action(Notify{std::move(text)})); }
  std::vector<CoordinatorAction> take() { return std::exchange(actions_, {}); }

  /// The Supervisor is told of it when all that was reported before has been dealt with.
  void report(Event event) { reports_.push_back(std::move(event)); }
  std::optional<Event> next_report() {
    if (reports_.empty() || finished_) return std::nullopt;
    Event next = std::move(reports_.front());
    reports_.pop_front();
    return next;
  }

  /// The run is over: nothing is reported any more.
  void finish() { finished_ = true; }
  [[nodiscard]] bool finished() const { return finished_; }
  /// Nobody is waited for any more, either.
  void part() {
    parted_ = true;
    emit(Parted{});
  }
  [[nodiscard]] bool parted() const { return parted_; }

 private:
  Instant now_{};
  std::vector<CoordinatorAction> actions_;
  std::deque<Event> reports_;
  bool finished_ = false;
  bool parted_ = false;
};

}  // namespace taas::run
