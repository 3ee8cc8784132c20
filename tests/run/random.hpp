#pragma once

#include <chrono>
#include <cstdint>
#include <random>

#include "base/clock.hpp"

namespace taas::run {

/// Everything that is left to chance in a simulated run comes from here, so that a seed replays it.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  int between(int low, int high) { return static_cast<int>(within(high - low + 1)) + low; }
  bool chance(int percent) { return within(100) < static_cast<std::uint64_t>(percent); }
  Duration up_to(Duration longest) { return Duration(within(longest.count() + 1)); }

 private:
  std::uint64_t within(std::int64_t count) { return engine_() % static_cast<std::uint64_t>(count); }

  std::mt19937_64 engine_;
};

}  // namespace taas::run
