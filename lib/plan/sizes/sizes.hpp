#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "plan/options/launch_settings.hpp"

namespace taas::plan {

/// How many ranks each simulated node gets, and what is to be said about it.
struct Sizes {
  Device device = Device::kCpu;
  std::vector<int> ranks_on_node;
  std::vector<std::string> notices;
};

/// As evenly as it goes, the larger nodes first: 9 on 2 is 5 + 4.
std::vector<int> spread_ranks(int total, int nodes);
/// " (6 + 6)" where it is worth saying: uneven, or nodes that could hold more.
std::string describe_spread(const std::vector<int>& counts, int full);

/// Reads --gpus, --gpus-per-node, --nnodes and --nproc-per-node for a run of which this machine plays all nodes. Values
/// that contradict each other are errors that name both.
Result<Sizes> decide_sizes(const SizeOptions& options, const Machine& machine);

}  // namespace taas::plan
