#include "run/agent/clock_offset.hpp"

#include <algorithm>

namespace taas::run {
namespace {

constexpr int kDriftDivisor = 5000;  // 200 millionths: more than two quartz clocks part from each other

Duration distance(Duration a, Duration b) { return a < b ? b - a : a - b; }

}  // namespace

void ClockOffset::add(Instant sent, Instant received, Instant answered) {
  auto round_trip = std::max(answered - sent, Duration{});
  Sample sample{received - (sent + round_trip / 2), round_trip, answered};
  if (!best_) {
    best_ = sample;
    return;
  }
  auto drift = std::max(answered - best_->at, Duration{}) / kDriftDivisor;
  bool jumped = distance(sample.offset, best_->offset) > (sample.round_trip + best_->round_trip) / 2 + drift;
  if (jumped || sample.round_trip <= best_->round_trip + 2 * drift) best_ = sample;
}

}  // namespace taas::run
