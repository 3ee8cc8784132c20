#include "run/agent/clock_offset.hpp"

#include <algorithm>

namespace taas::run {
namespace {

constexpr int kDriftDivisor = 5000;  // 200 millionths: more than two quartz clocks part from each other

Duration distance(Duration a, Duration b) { return a < b ? b - a : a - b; }

/// One overload a message with instants.
class Converter {
 public:
  explicit Converter(const ClockOffset& clock) : clock_(clock) {}

  template <class Message>
  void operator()(Message& message) const {
    if constexpr (requires { message.at; }) shift(message.at);
    if constexpr (requires { message.evidence; }) shift(message.evidence.first_error_at);
  }
  void operator()(Output& message) const {
    for (auto& line : message.lines) shift(line.at);
  }

 private:
  void shift(Instant& at) const { at = clock_.to_coordinator(at); }

  const ClockOffset& clock_;
};

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

AgentMessage on_coordinators_clock(AgentMessage message, const ClockOffset& clock) {
  std::visit(Converter(clock), message);
  return message;
}

}  // namespace taas::run
