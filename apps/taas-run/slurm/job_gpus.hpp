#pragma once

#include <map>
#include <string>

#include "plan/options/options.hpp"

namespace taas::cli {

/// The GPUs of each node of the SLURM job that this process is in. Empty without a job, where the plan does not depend
/// on them, and where SLURM does not answer: then the nodes are taken to be equal.
std::map<std::string, int> ask_for_gpus_by_node(const plan::Options& options, const plan::Machine& machine);

}  // namespace taas::cli
