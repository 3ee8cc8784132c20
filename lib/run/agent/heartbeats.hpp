#pragma once

#include <algorithm>
#include <optional>

#include "run/agent/agent_events.hpp"

namespace taas::run {

/// The heartbeats that an agent sends, and since when none of them was answered: over its link, or over another
/// connection while that is silent. Pure.
class Heartbeats {
 public:
  explicit Heartbeats(const AgentPolicy& policy) : policy_(policy) {}

  /// A new link: the coordinator cannot have heard of it before.
  void begin(Instant now) {
    answered_ = over_link_ = now;
    woken_at_.reset();
  }
  Heartbeat beat(Instant now) {
    beat_at_ = now + policy_.heartbeat_interval;
    return {++beats_, now};
  }
  void stop() { beat_at_.reset(); }
  void on(const HeartbeatEcho& echo, bool aside);
  /// This process has not run since `since`: for its own reasons, or because all of the run's were stopped together.
  /// Where the coordinator had answered until then, it is asked once more before the fence counts.
  void wake(Instant since, Instant now);
  /// The coordinator has not answered since then.
  [[nodiscard]] bool is_waking() const { return woken_at_.has_value(); }

  bool take_due_beat(Instant now) { return take_due(beat_at_, now); }
  [[nodiscard]] std::optional<Instant> next_beat() const { return beat_at_; }
  /// The link is silent, and the coordinator is to be asked over another connection, at most once a second.
  bool take_ask(Instant now);
  /// From then on the coordinator may give this node up: unless an answer comes, its ranks have to be killed.
  [[nodiscard]] Instant fence_at() const;

 private:
  /// Without an answer, until the coordinator is asked over another connection.
  [[nodiscard]] Duration doubt() const;

  AgentPolicy policy_;
  std::uint64_t beats_ = 0;
  Instant answered_{};   // when the last heartbeat that was answered had been sent
  Instant over_link_{};  // the same of those that were answered over the link
  Instant asked_{};
  std::optional<Instant> woken_at_;
  std::optional<Instant> beat_at_;
};

}  // namespace taas::run
