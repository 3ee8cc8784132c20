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

/// Who is found to be silent, at a check.
struct SilentAgents {
  std::vector<AgentId> lost;    ///< for too long
  std::vector<AgentId> silent;  ///< their links, so long that it is told, which it was not yet
  Duration silence{};           ///< the longest of theirs
};

/// Who was told of and has been heard again.
struct ReturnedAgents {
  std::vector<AgentId> agents;
  Duration silence{};  ///< the longest
};

/// When each agent was last heard, and which of them have been silent for long, or for too long. Pure.
class Silence {
 public:
  explicit Silence(SilencePolicy policy) : policy_(policy) {}

  /// Over its link.
  void on_sign_of_life(AgentId agent, Instant now);
  /// Over another connection: it lives, and its link is silent still.
  void on_sign_of_life_aside(AgentId agent, Instant now) { heard_[agent].at = now; }
  /// From now on its silence counts. An agent in this process is not watched: a call has no link that could break.
  void watch(AgentId agent, Instant now);
  void forget(AgentId agent);
  [[nodiscard]] Instant last_heard(AgentId agent) const { return heard_.at(agent).at; }
  /// So long that it was told.
  [[nodiscard]] bool is_silent(AgentId agent) const { return heard_.contains(agent) && heard_.at(agent).told; }

  SilentAgents check(Instant now);
  /// Nobody while others are silent still, for a moment: a network that is back brings them all.
  ReturnedAgents take_returned();
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
    Instant over_link{};
    bool watched = false;
    bool told = false;  ///< its silence, to the user
  };

  void plan_check(Instant now);

  SilencePolicy policy_;
  std::map<AgentId, Heard> heard_;
  std::optional<Instant> check_at_;
  int told_ = 0;                          // agents whose silence is
  std::map<AgentId, Duration> returned_;  // since then, and how long they were silent
  bool returned_are_due_ = false;         // a check has come since they were asked for
  Duration stalled_{};                    // when this process last did not run
  Instant excused_until_{};               // agents that were lost by then had not been answered
};

}  // namespace taas::run
