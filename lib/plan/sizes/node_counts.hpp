#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "plan/launch_mode/launch_mode.hpp"
#include "plan/options/launch_settings.hpp"

namespace taas::plan {

/// How many ranks each node of a full world gets, and how many nodes are asked.
struct NodeCounts {
  Device device = Device::kCpu;
  std::vector<int> ranks_on_node;
  int min_nodes = 1;        ///< less than ranks_on_node.size() only for elastic runs, whose nodes are equal
  int spares = 0;           ///< further nodes that stand by
  int expected_agents = 1;  ///< nodes and spares: of a list of hosts, its first ones
  std::vector<std::string> notices;
};

/// Reads the size options for nodes that are reached in this way. Without --nnodes a total takes as many nodes as it
/// needs, in their order. Agents check their own GPUs later: those of other machines are not known here.
Result<NodeCounts> decide_node_counts(const Options& options, const LaunchMode& mode, const Machine& machine);

}  // namespace taas::plan
