#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "run/coordinator/nodes/data_nodes.hpp"
#include "run/coordinator/nodes/membership.hpp"
#include "run/events/policy.hpp"

namespace taas::run {

/// What the logic needs to know to choose nodes.
struct CoordinatorPolicy {
  Policy run;                           ///< world_size and node_of_rank are overwritten for each generation
  std::vector<int> ranks_on_node;       ///< with all nodes there; its size is the most nodes a generation has
  bool nodes_count_themselves = false;  ///< an agent that says Hello::ranks gets as many, whatever ranks_on_node says
  int min_nodes = 1;        ///< fewer than ranks_on_node.size() only for elastic runs, whose nodes are equal
  int expected_agents = 1;  ///< hosts that were asked: nobody else is waited for
  std::vector<std::string> host_names;  ///< by order, for messages; empty: not known beforehand
  std::string launch;                   ///< Welcome::run
  std::string version;  ///< of taas-run; agents of another one are dismissed with a line that names both
  Duration lost_after = std::chrono::seconds(30);          ///< without a heartbeat
  Duration closed_grace = std::chrono::milliseconds(500);  ///< between an agent's closed link and a new generation
  Duration gather_timeout = std::chrono::seconds(600);     ///< for enough nodes to be there
  Duration elastic_wait = std::chrono::seconds(30);        ///< for more than min_nodes while hosts are missing
  Duration answer_patience{};    ///< for hosts that have not answered when others have failed, so that all are named
  bool nodes_may_leave = false;  ///< an agent that is told to stop leaves, where the others are enough for a generation
  bool tells_verdict = false;    ///< agents have consoles of their own: they are told how the run ended
  bool in_process = false;       ///< the only agent with ranks is in this process: no heartbeats, no probing
  DataNodesPolicy data = {};     ///< CPU machines with agents of their own; none: they are simulated in this process
  std::string loader = {};       ///< --loader: ranks start when data workers have prepared it; empty: at once
  bool nodes_are_held = false;   ///< they come from a queue, once ReleaseNodes was told: when --loader is prepared
  std::string this_machine = "127.0.0.1";  ///< its loopback address
  std::string folder = {};  ///< the mark of the run's folder; an agent that tells another one sees another
                            ///< folder. Empty: all nodes see the same one
};

inline MembershipPolicy membership_policy(const CoordinatorPolicy& policy) {
  return {policy.ranks_on_node,  policy.min_nodes,    policy.expected_agents, policy.host_names,
          policy.gather_timeout, policy.elastic_wait, policy.answer_patience, policy.nodes_are_held};
}

}  // namespace taas::run
