#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "run/coordinator/agents.hpp"
#include "run/coordinator/nodes/data_nodes.hpp"
#include "run/coordinator/policy.hpp"

namespace taas::run {

/// Looks at the nodes before ranks are started there, in two rounds: each says what it has, and then which others it
/// reaches. An agent that does not answer in time is a finding. CPU machines are looked at with them: those that are
/// there, and, where nothing else is to be done, those that come within half a minute.
class NodeCheck {
 public:
  NodeCheck(Check wanted, Decisions& decisions, Agents& agents, const DataNodes& machines)
      : wanted_(wanted), decisions_(decisions), agents_(agents), machines_(machines) {}

  /// Whether these nodes have been looked at, now or before; begins with it if not. Nodes of later generations are not
  /// looked at again.
  bool is_done(const std::vector<AgentId>& parties);
  void on(AgentId agent, const NodeExamined& message);
  void on(AgentId agent, const NodesReached& message);
  /// It is gone and will not answer.
  void forget(AgentId agent);
  void expire();
  [[nodiscard]] std::optional<Instant> next_check() const;
  /// There cannot be enough nodes: those that are there are looked at all the same.
  void fail(const std::string& why, const std::string& hint);

  /// Nothing is to be started, and all is found out that can be.
  [[nodiscard]] bool concludes_the_run() const { return wanted_ == Check::kOnly && round_ == Round::kDone; }
  /// Empty until then, and where nothing is in the way of ranks.
  [[nodiscard]] const std::vector<Finding>& findings() const { return report_.findings; }
  /// The first error, in a line; empty: ranks may start.
  [[nodiscard]] std::string obstacle() const;

 private:
  enum class Round { kNone, kExamining, kReaching, kDone };
  struct Party {
    ExaminedNode node;
    int order = -1;  // in the list of hosts
    std::uint16_t port = 0;
    bool answered = false;  // in this round
  };

  [[nodiscard]] bool awaits_machines();
  void examine(const std::vector<AgentId>& parties);
  void begin_round(Round round, Duration patience);
  void advance();
  void ask_for_ways();
  void conclude();

  const Check wanted_;
  Decisions& decisions_;
  Agents& agents_;
  const DataNodes& machines_;
  bool machines_are_late_ = false;
  Round round_ = Round::kNone;
  std::map<AgentId, Party> parties_;
  std::optional<Instant> until_;
  CheckReport report_;
};

}  // namespace taas::run
