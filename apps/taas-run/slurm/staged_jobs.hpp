#pragma once

#include <string>
#include <vector>

#include "plan/launch_plan.hpp"
#include "slurm/meeting_file.hpp"

namespace taas::cli {

// A staged submission: one job for the GPU nodes, which is held, and one for the CPU machines that prepare --loader.

/// Where agents of the held job learn where the coordinator is.
MeetingFile held_job_file(const std::string& output_directory, const std::string& held_job);

/// sbatch: on each node one agent, which looks for the coordinator in the output folder.
std::vector<std::string> held_job_command(const plan::LaunchPlan& plan, const std::string& taas_run,
                                          const std::vector<std::string>& arguments);
/// sbatch: the coordinator, on the first of the CPU machines.
std::vector<std::string> preparing_job_command(const plan::LaunchPlan& plan, const std::string& taas_run,
                                               const std::vector<std::string>& arguments, const std::string& held_job);
/// srun, outside of a job: the CPU machines' agents, for a coordinator in this process.
std::vector<std::string> preparing_step_command(const plan::LaunchPlan& plan, const std::string& taas_run);

/// Returns the job's number.
Result<std::string> submit_held_job(const plan::LaunchPlan& plan, const std::string& taas_run,
                                    const std::vector<std::string>& arguments);
/// For --detach: prints the numbers of both jobs. Where SLURM refuses this one, the held one is cancelled.
Result<int> submit_preparing_job(const plan::LaunchPlan& plan, const std::string& taas_run,
                                 const std::vector<std::string>& arguments, const std::string& held_job);
/// Where that fails, one line says what is left to do.
void cancel_held_job(const std::string& held_job);

}  // namespace taas::cli
