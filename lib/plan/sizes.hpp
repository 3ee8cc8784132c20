#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "plan/launch_plan.hpp"
#include "plan/options.hpp"

namespace taas::plan {

/// How many ranks each node gets, and what is to be said about it.
struct Sizes {
  Device device = Device::kCpu;
  std::vector<int> ranks_on_node;
  std::vector<std::string> notices;
};

/// Whether a text can be a value of --nnodes here; the error says why not, without naming the flag.
Result<> check_node_count(std::string_view text);
/// The same for --nproc-per-node, as far as can be said without knowing the machine.
Result<> check_process_count(std::string_view text);

/// Reads --gpus, --gpus-per-node, --nnodes and --nproc-per-node against what this machine has. Values that contradict
/// each other are errors that name both.
Result<Sizes> decide_sizes(const SizeOptions& options, const Machine& machine);

}  // namespace taas::plan
