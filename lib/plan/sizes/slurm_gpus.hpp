#pragma once

#include <map>
#include <string>
#include <string_view>

#include "plan/launch_mode/slurm.hpp"
#include "plan/options/options.hpp"

namespace taas::plan {

/// How many GPUs of a job each of its nodes has, by SLURM's names: what `scontrol show job --details --oneliner`
/// prints. Nodes without any are there with 0. Empty where that says nothing of nodes.
std::map<std::string, int> gpus_by_node(std::string_view scontrol);

/// Whether the plan depends on what only SLURM can tell: nodes of a job may have different numbers of GPUs, and its
/// environment tells each of its own. Of a step's tasks the one that coordinates has to know.
bool needs_gpus_by_node(const Options& options, const SlurmJob& job);

}  // namespace taas::plan
