#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "run/coordinator/nodes/host_history.hpp"
#include "run/events/agent_id.hpp"
#include "run/messages/messages.hpp"

namespace taas::run {

struct MembershipPolicy {
  std::vector<int> ranks_on_node;  ///< with all nodes there
  int min_nodes = 1;
  int expected_agents = 1;
  std::vector<std::string> host_names;  ///< by order; empty: not known
  Duration gather_timeout = std::chrono::seconds(600);
  Duration elastic_wait = std::chrono::seconds(30);
  Duration answer_patience{};   ///< see CoordinatorPolicy
  bool nodes_are_held = false;  ///< see CoordinatorPolicy: others are waited for from the first node's arrival on
};

/// These agents make up the next generation: by node. One that plays several nodes is there as often.
struct Chosen {
  std::vector<AgentId> agent_of_node;
};
/// Ask again at this instant, or when something has changed.
struct WaitForNodes {
  Instant until;
};
using NodeChoice = std::variant<Chosen, WaitForNodes, GatherFailed>;

/// Who is there, and who makes up the next generation. A node keeps its agent over generations; the first filling goes
/// by Hello::order, then by arrival. A hole is filled by an agent that was left over, else the nodes move up when the
/// run may go on with fewer. A host that was lost is taken back only after a pause that doubles each time, unless there
/// is nobody else.
class Membership {
 public:
  explicit Membership(MembershipPolicy policy);

  /// The agent there with this order, if there is one.
  [[nodiscard]] std::optional<AgentId> holder(int order) const;
  void arrive(AgentId agent, const Hello& hello, Instant at);
  void ready(AgentId agent);
  /// It was there and is lost.
  void lose(AgentId agent, Instant at, Blame blame = Blame::kHost);
  /// It was there and leaves of its own accord. It may come back like a newcomer, and is not fetched.
  void leave(AgentId agent);
  /// There would be enough agents for a generation if this one left.
  [[nodiscard]] bool enough_without(AgentId agent, Instant now) const;
  /// It was there, cannot take part, and need not try again.
  void refuse(AgentId agent, std::string why, Instant at);
  /// Nobody came from there, with order -1: of those that have not come, nobody will. `why` names the host.
  void fail(int order, std::string why, Instant at);

  void begin(Generation generation, Instant at);
  [[nodiscard]] NodeChoice choose(Instant now) const;
  /// These are the nodes from now on.
  void seat(const std::vector<AgentId>& agent_of_node) { seats_ = agent_of_node; }
  /// There are enough agents for a generation without those that are lost, and without a host that has to pause.
  [[nodiscard]] bool enough(Instant now) const;
  /// There are, or will be when those that were asked for and are still on their way have come.
  [[nodiscard]] bool will_be_enough(Instant now) const;
  /// Too few are there, and too few can come.
  [[nodiscard]] bool hopeless() const { return there() + may_come() < policy_.min_nodes; }
  /// "2 of 4 nodes are there; missing: hostc, hostd".
  [[nodiscard]] std::string who_is_missing() const;

  /// As in HostHistory.
  std::vector<int> hosts_to_start(Instant now) { return hosts_.hosts_to_start(now); }
  [[nodiscard]] bool was_started_again(int order) const { return hosts_.was_started_again(order); }
  [[nodiscard]] std::optional<Instant> next_start() const { return hosts_.next_start(); }

 private:
  struct Present {
    Hello hello;
    Instant since{};
    bool ready = false;
  };
  std::optional<Hello> remove(AgentId agent);
  [[nodiscard]] std::vector<AgentId> seated() const;
  [[nodiscard]] std::vector<AgentId> left_over(Instant now, bool with_barred) const;
  [[nodiscard]] std::vector<AgentId> fill(Instant now, bool with_barred) const;
  [[nodiscard]] bool earlier_one_is_missing(const std::vector<AgentId>& chosen) const;
  [[nodiscard]] std::variant<WaitForNodes, GatherFailed> failure(Instant now) const;
  [[nodiscard]] int most_nodes() const { return static_cast<int>(policy_.ranks_on_node.size()); }
  [[nodiscard]] int plays(AgentId agent) const { return present_.at(agent).hello.plays; }
  [[nodiscard]] int there() const;
  [[nodiscard]] int awaited() const;
  [[nodiscard]] int may_come() const;
  [[nodiscard]] std::string name_of(int order) const;
  [[nodiscard]] std::vector<std::string> missing_names() const;
  [[nodiscard]] std::vector<std::string> silent_names() const;
  [[nodiscard]] std::string failures() const;

  MembershipPolicy policy_;
  bool command_failed_ = false;         // the one that was to start all agents
  std::map<AgentId, Present> present_;  // in the order of their arrival
  std::map<int, AgentId> by_order_;
  HostHistory hosts_;
  std::vector<AgentId> seats_;  // by node; some may have left
  Generation generation_{};
  Instant begun_{};
  std::optional<Instant> first_failure_;
  bool anybody_came_ = false;
};

}  // namespace taas::run
