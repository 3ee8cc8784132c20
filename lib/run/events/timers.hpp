#pragma once

#include <initializer_list>
#include <optional>

#include "base/clock.hpp"

namespace taas::run {

/// The timer has come; it is not set any more.
inline bool take_due(std::optional<Instant>& timer, Instant now) {
  if (!timer || *timer > now) return false;
  timer.reset();
  return true;
}

/// Nothing when none of them is set.
inline std::optional<Instant> earliest(std::initializer_list<std::optional<Instant>> timers) {
  std::optional<Instant> first;
  for (const auto& timer : timers) {
    if (timer && (!first || *timer < *first)) first = timer;
  }
  return first;
}

}  // namespace taas::run
