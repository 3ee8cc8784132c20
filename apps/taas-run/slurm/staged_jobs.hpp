#pragma once

#include <string>
#include <vector>

#include "plan/launch_plan.hpp"
#include "slurm/meeting_file.hpp"

namespace taas::cli {

// A staged submission: one job for the GPU nodes, which is held, and one for the CPU machines that prepare --loader.

struct StagedIds {
  std::string held;
  std::string preparing;  ///< empty: this process is in it
};

constexpr const char* kDataNode = "data";  ///< --as-staged-node: a CPU machine

/// Where agents of both jobs learn where the coordinator is.
MeetingFile meeting_file(const std::string& output_directory, const std::string& held_job);

/// sbatch: on each GPU node one agent, which looks for the coordinator in the output folder.
std::vector<std::string> held_job_command(const plan::LaunchPlan& plan, const std::string& taas_run,
                                          const std::vector<std::string>& arguments);
/// sbatch: the same on each CPU machine; with --detach the coordinator, on the first of them.
std::vector<std::string> preparing_job_command(const plan::LaunchPlan& plan, const std::string& taas_run,
                                               const std::vector<std::string>& arguments, const std::string& held_job);

/// The held job first, so that the other one knows its number. Where SLURM refuses that one, the first is cancelled.
Result<StagedIds> submit_staged(const plan::LaunchPlan& plan, const std::string& taas_run,
                                const std::vector<std::string>& arguments);
/// Where that fails, one line says what is left to do.
void cancel_jobs(const StagedIds& ids);

/// One line for the user.
std::string describe(const StagedIds& ids, const std::string& loader);
/// For --detach: the job that coordinates, then the held one, a line each. Returns the exit code.
int print_ids(const StagedIds& ids, const std::string& loader);

}  // namespace taas::cli
