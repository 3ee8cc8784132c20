#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/launch_plan.hpp"

namespace taas::cli {

/// Of a job whose output goes to a file; it prints the job's number.
std::vector<std::string> sbatch_command();

/// Options of sbatch, srun and salloc: what the nodes of ranks are asked for with.
std::vector<std::string> resources_of_nodes(const plan::LaunchPlan& plan);
/// The same for CPU machines, with this limit of their time.
std::vector<std::string> resources_of_machines(const plan::LaunchPlan& plan, const std::optional<std::string>& time);

/// The command that submits this launch to SLURM: srun, which waits and shows the output, or sbatch with --detach.
std::vector<std::string> submit_command(const plan::LaunchPlan& plan, const std::string& taas_run,
                                        const std::vector<std::string>& arguments);

/// Submits. With srun this process becomes it, and does not return.
Result<int> submit(const plan::LaunchPlan& plan, const std::string& taas_run,
                   const std::vector<std::string>& arguments);

}  // namespace taas::cli
