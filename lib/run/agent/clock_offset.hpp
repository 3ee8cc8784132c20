#pragma once

#include <optional>

#include "base/clock.hpp"
#include "run/messages/messages.hpp"

namespace taas::run {

/// How far the coordinator's clock is ahead of this agent's, from heartbeat echoes. The echo with the shortest round
/// trip says it best (its error is at most half of that); what it said ages slowly, so that drift is followed. A clock
/// that has jumped, as after a machine was suspended, contradicts it and is believed at once.
class ClockOffset {
 public:
  /// `sent` and `answered` are this agent's clock, `received` is the coordinator's.
  void add(Instant sent, Instant received, Instant answered);
  [[nodiscard]] bool known() const { return best_.has_value(); }
  /// Zero until the first echo.
  [[nodiscard]] Duration offset() const { return best_ ? best_->offset : Duration{}; }
  /// An instant that is not set stays so.
  [[nodiscard]] Instant to_coordinator(Instant at) const { return at == Instant{} ? at : at + offset(); }

 private:
  struct Sample {
    Duration offset;
    Duration round_trip;
    Instant at;
  };
  std::optional<Sample> best_;
};

/// The message with all its instants on the coordinator's clock.
AgentMessage on_coordinators_clock(AgentMessage message, const ClockOffset& clock);

}  // namespace taas::run
