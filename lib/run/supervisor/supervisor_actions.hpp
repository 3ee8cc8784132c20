#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "run/events/events.hpp"

namespace taas::run {

/// What the Supervisor and its parts decide on the event at hand, in order.
class SupervisorActions {
 public:
  /// The next event: time never goes back.
  void begin(Instant at) { now_ = std::max(now_, at); }
  [[nodiscard]] Instant now() const { return now_; }

  void emit(Action action) { actions_.push_back(std::move(action)); }
  void notify(std::string text) { emit(Notify{std::move(text)}); }
  std::vector<Action> take() { return std::exchange(actions_, {}); }

 private:
  Instant now_{};
  std::vector<Action> actions_;
};

}  // namespace taas::run
