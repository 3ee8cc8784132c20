#pragma once

#include "run/coordinator/coordinator.hpp"
#include "run/random.hpp"

namespace taas::sim {

using run::Random;

/// Shorter than the patience of any agent.
constexpr Duration kHarmlessStall = std::chrono::milliseconds(1000);

/// What kind of world a simulated run takes place in.
struct Settings {
  run::CoordinatorPolicy policy;
  run::AgentPolicy agent;    ///< of every node
  int nodes = 1;             ///< machines, spares included
  int data_nodes = 0;        ///< CPU machines beside them
  bool ordered = true;       ///< nodes have a place in a list
  bool host_starter = true;  ///< lost hosts are started again from the coordinator's side
  int rank_trouble = 0;      ///< percent of ranks that fail by themselves, in the first generations
  int node_faults = 0;       ///< how many things happen to nodes and their network
  int versions_apart = 0;    ///< percent of nodes with another release
  int kernels_apart = 0;     ///< percent of nodes that no other one shares a kernel with
  int folders_apart = 0;     ///< percent of nodes that do not see the coordinator's folder
  int refusals = 0;          ///< percent of nodes that cannot take part
  int stalls = 0;            ///< how often the coordinator's loop stands still
  Duration longest_stall{};  ///< up to kHarmlessStall nobody may notice
  Duration disk{};           ///< what a node's or the coordinator's disk may take for one thing
  int long_words = 0;        ///< percent of exceptions with a text that no frame holds
  Duration longest_start{};  ///< until a node's agent is there
  Duration work{};           ///< of a generation that is let live
  bool calm = false;         ///< all ranks join, and heed signals at once
  int user_signal = 0;       ///< sent at some moment; 0: none
  bool suspension = false;   ///< everything is stopped at some moment, and continued later

  /// So long a network may be cut, or the coordinator stand still, without a node being lost.
  [[nodiscard]] Duration harmless() const;
  [[nodiscard]] int machines() const { return nodes + data_nodes; }
};

/// Draws a world with everything that may go wrong.
Settings draw_settings(Random& random);
/// A world in which one rank fails once, for measuring.
Settings plain_settings(int nodes, int ranks_a_node);

}  // namespace taas::sim
