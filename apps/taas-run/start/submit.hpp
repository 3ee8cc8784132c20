#pragma once

#include <string>
#include <vector>

#include "plan/launch_plan.hpp"

namespace taas::cli {

/// The command that submits this launch to SLURM: srun, which waits and shows the output, or sbatch with --detach.
std::vector<std::string> submit_command(const plan::LaunchPlan& plan, const std::string& taas_run,
                                        const std::vector<std::string>& arguments);

/// Submits. With srun this process becomes it, and does not return.
Result<int> submit(const plan::LaunchPlan& plan, const std::string& taas_run,
                   const std::vector<std::string>& arguments);

}  // namespace taas::cli
