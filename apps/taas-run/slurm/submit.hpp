#pragma once

#include <string>
#include <vector>

#include "plan/launch_plan.hpp"

namespace taas::cli {

/// Options of sbatch, srun and salloc: what the nodes of ranks are asked for with.
std::vector<std::string> resources_of_nodes(const plan::LaunchPlan& plan);

/// The command that submits this launch to SLURM: srun, which waits and shows the output, or sbatch with --detach.
std::vector<std::string> submit_command(const plan::LaunchPlan& plan, const std::string& taas_run,
                                        const std::vector<std::string>& arguments);

/// Submits. With srun this process becomes it, and does not return.
Result<int> submit(const plan::LaunchPlan& plan, const std::string& taas_run,
                   const std::vector<std::string>& arguments);

}  // namespace taas::cli
