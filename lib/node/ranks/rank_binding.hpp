#pragma once

#include <vector>

#include "base/error.hpp"
#include "node/process/rank_process.hpp"
#include "plan/options/launch_settings.hpp"
#include "plan/options/options.hpp"

namespace taas::node {

/// The CPUs of each of a node's ranks (--numa-binding), by the NUMA node of its first GPU; without GPUs ranks are
/// spread over the nodes. All empty where nothing was asked for. Fails where it cannot be told what is near.
Result<std::vector<std::vector<int>>> cpus_of_ranks(const std::vector<RankStart>& starts,
                                                    const plan::LaunchSettings& settings, const plan::Machine& machine);

}  // namespace taas::node
