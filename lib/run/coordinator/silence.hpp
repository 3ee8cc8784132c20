#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "run/coordinator/coordinator_events.hpp"

namespace taas::run {

/// How an agent was lost.
struct AgentLoss {
  std::string reason;
  Instant last_sign_of_life;
  Instant gone_at;  ///< nothing can live there from then on
};

struct SilencePolicy {
  Duration lost_after{};  ///< as in CoordinatorPolicy, with the one below
  Duration closed_grace{};
};

/// When each agent was last heard, and which of them have been silent for too long. Pure.
class Silence {
 public:
  explicit Silence(SilencePolicy policy) : policy_(policy) {}

  void on_sign_of_life(AgentId agent, Instant now) { heard_[agent].at = now; }
  /// From now on its silence counts. An agent in this process is not watched: a call has no link that could break.
  void watch(AgentId agent, Instant now);
  void forget(AgentId agent) { heard_.erase(agent); }
  [[nodiscard]] Instant last_heard(AgentId agent) const { return heard_.at(agent).at; }

  /// Those that have been silent for too long.
  std::vector<AgentId> expire(Instant now);
  [[nodiscard]] std::optional<Instant> next_check() const { return check_at_; }
  [[nodiscard]] AgentLoss loss_of_silent(AgentId agent, Instant now) const;
  /// Its link has ended.
  [[nodiscard]] AgentLoss loss_of_link(const AgentLeft& event, Instant now) const;

  /// Nobody else is late because this process did not run: silence is counted anew. Returns whether agents may have
  /// given this process up meanwhile; those that are lost soon are then not to blame.
  bool excuse(Duration stalled, Instant now);
  [[nodiscard]] bool is_excused(Instant now) const { return now < excused_until_; }
  /// Why an agent is lost that is not to blame.
  [[nodiscard]] std::string reason_of_excused() const;

 private:
  struct Heard {
    Instant at{};
    bool watched = false;
  };

  SilencePolicy policy_;
  std::map<AgentId, Heard> heard_;
  std::optional<Instant> check_at_;
  Duration stalled_{};       // when this process last did not run
  Instant excused_until_{};  // agents that were lost by then had not been answered
};

}  // namespace taas::run
