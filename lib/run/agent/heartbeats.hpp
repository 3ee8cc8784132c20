#pragma once

#include <algorithm>
#include <optional>

#include "run/agent/agent_events.hpp"

namespace taas::run {

/// The heartbeats that an agent sends over its link, and since when none of them was answered. Pure.
class Heartbeats {
 public:
  explicit Heartbeats(const AgentPolicy& policy) : policy_(policy) {}

  /// A new link: the coordinator cannot have heard of it before.
  void begin(Instant now) { answered_ = now; }
  Heartbeat beat(Instant now) {
    beat_at_ = now + policy_.heartbeat_interval;
    return {++beats_, now};
  }
  void stop() { beat_at_.reset(); }
  void on(const HeartbeatEcho& echo) { answered_ = std::max(answered_, echo.sent); }

  bool take_due_beat(Instant now) { return take_due(beat_at_, now); }
  [[nodiscard]] std::optional<Instant> next_beat() const { return beat_at_; }
  /// From then on the coordinator may give this node up: unless an answer comes, its ranks have to be killed.
  [[nodiscard]] Instant fence_at() const { return answered_ + policy_.fence_after; }

 private:
  AgentPolicy policy_;
  std::uint64_t beats_ = 0;
  Instant answered_{};  // when the last heartbeat that was answered had been sent
  std::optional<Instant> beat_at_;
};

}  // namespace taas::run
