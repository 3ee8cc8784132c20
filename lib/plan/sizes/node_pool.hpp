#pragma once

#include <string>
#include <vector>

#include "plan/launch_mode/launch_mode.hpp"
#include "plan/sizes/size_request.hpp"

namespace taas::plan {

/// What is known beforehand of a node, in ranks.
struct NodeKind {
  std::string name;                 ///< empty: not known yet
  int slots = 0;                    ///< most ranks; 0: not bounded
  int usual = kDefaultGpusPerNode;  ///< ranks it gets of a total, as long as there are enough
  int natural = 0;                  ///< ranks it gets when nobody says how many; 0: not known
  int gpus = 0;                     ///< ranks that its GPUs are for; 0: not known
  int gpus_left_over = 0;           ///< that are too few for another rank
};

/// The nodes that a way leads to.
struct NodePool {
  std::string name;             ///< for messages: "--hosts", "job 17"
  std::string hint;             ///< a further way to say how many ranks a node gets
  bool closed = true;           ///< there are no others than `nodes`
  std::vector<NodeKind> nodes;  ///< in the order of their ranks
  NodeKind others;              ///< what those are like that are not in `nodes`
  NodeResources resources;

  [[nodiscard]] const NodeKind& at(std::size_t index) const { return index < nodes.size() ? nodes[index] : others; }
};

/// For every way but OneMachine.
NodePool describe_pool(const Options& options, const LaunchMode& mode, const Machine& machine);

}  // namespace taas::plan
