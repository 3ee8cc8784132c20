#pragma once

#include <optional>
#include <string>
#include <vector>

#include "run/coordinator/loader_wait.hpp"
#include "run/coordinator/members.hpp"
#include "run/coordinator/nodes/membership.hpp"
#include "run/coordinator/nodes/reachability.hpp"
#include "run/events/timers.hpp"

namespace taas::run {

/// The way to a generation: waits until enough nodes are there, until all of them reach the first one, and until
/// --loader is prepared. Nodes that are held are released at that last point, and come then. Then it seats the members
/// and reports NodesGathered, or else GatherFailed.
class Gathering {
 public:
  Gathering(const CoordinatorPolicy& policy, Decisions& decisions, Agents& agents, Membership& membership,
            Members& members, LoaderWait& loader);

  void begin(Generation generation);
  [[nodiscard]] bool active() const { return active_; }
  /// Something has changed, or the time has come.
  void advance();
  /// There cannot be a generation.
  void fail(std::string why, int exit_code);
  /// The job that the nodes come from is over: too few of them are there, now or when the next generation begins.
  void on(const NodesOver& event);
  /// There cannot be enough nodes any more: the report of the run's end says why.
  [[nodiscard]] bool hopeless() const { return active_ && membership_.hopeless(); }

  /// Addresses of the first node that this agent reaches.
  void on(AgentId agent, const AddressesReached& message);
  void forget(AgentId agent) { reach_.forget(agent); }
  void expire(Instant now) { reach_.expire(now); }
  [[nodiscard]] std::optional<Instant> next_check() const;

  [[nodiscard]] const MeetingPoint& meeting_point() const { return meeting_point_; }

 private:
  void tell_who_is_missing();
  void release_nodes();
  void meet(const std::vector<AgentId>& agent_of_node);
  [[nodiscard]] bool find_address(const std::vector<AgentId>& parties);
  void tell_unreachable(const std::vector<AgentId>& parties);
  [[nodiscard]] bool loader_is_prepared();
  void conclude(const std::vector<AgentId>& agent_of_node);
  [[nodiscard]] std::vector<int> count_ranks(const std::vector<AgentId>& agent_of_node) const;
  [[nodiscard]] std::vector<std::string> servers_of_ranks() const;

  const CoordinatorPolicy& policy_;
  Decisions& decisions_;
  Agents& agents_;
  Membership& membership_;
  Members& members_;
  LoaderWait& loader_;
  Reachability reach_;
  bool active_ = false;
  Generation generation_{-1};
  Instant since_{};
  bool released_ = false;   // ReleaseNodes was told
  std::string nodes_over_;  // why nobody comes any more; empty: somebody may
  std::optional<Instant> ask_again_at_;
  std::optional<Instant> notice_at_;
  MeetingPoint meeting_point_;
};

}  // namespace taas::run
