#pragma once

#include <deque>

#include "base/clock.hpp"

namespace taas::run {

/// How soon a data worker that has ended is started again: at once, and from the third end within ten seconds on after
/// a pause that doubles up to ten seconds. Pure.
class RestartPause {
 public:
  /// It has ended now.
  Duration next(Instant at);
  /// Said of the last end: the first in a row is news, those that follow are the same again.
  [[nodiscard]] bool is_news() const { return ends_.size() == 1; }

 private:
  std::deque<Instant> ends_;  // each within ten seconds, and the pause before it, of the next
  Duration pause_{};
};

}  // namespace taas::run
