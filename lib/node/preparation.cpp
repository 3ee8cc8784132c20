#include "node/preparation.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>

#include "base/environment/environment.hpp"
#include "base/exit_status.hpp"
#include "proc/family/descendants.hpp"
#include "proc/spawn/process_end.hpp"

namespace taas::node {
namespace {

constexpr auto kKillPatience = std::chrono::seconds(5);  // for processes that are stuck in the kernel

[[noreturn]] void end_at_once() {
  kill_and_reap_descendants(kKillPatience);
  ::_exit(kSignalExitCode + SIGKILL);
}

}  // namespace

void end_with_keeper(boost::asio::io_context& io, Lifeline& lifeline) { lifeline.on_keeper_death(io, end_at_once); }

Result<> end_with_process(boost::asio::io_context& io, const plan::LaunchPlan& plan) {
  int pid = plan.options.supervision.end_with;
  if (pid == 0) return {};
  auto watched = on_process_end(io, pid, end_at_once);
  return watched ? watched : std::move(watched).error().with("--end-with");
}

namespace {

/// "26792918_2-" of a task of a job array: the folder is found by what the batch system calls the run. One that the
/// user has named by --rdzv-id is called so.
std::string folder_prefix(const plan::LaunchPlan& plan, const plan::Machine& machine) {
  if (!plan.options.output.name.empty()) return plan.options.output.name + "-";
  if (plan.options.rendezvous.run_id) return {};
  const auto value = [&](const char* name) { return value_of(machine.environment, name); };
  const auto job = value("SLURM_JOB_ID"), array = value("SLURM_ARRAY_JOB_ID"), task = value("SLURM_ARRAY_TASK_ID");
  if (!array.empty() && !task.empty()) return fmt::format("{}_{}-", array, task);
  return job.empty() ? std::string() : job + "-";
}

}  // namespace

Result<storage::RunDirectory> create_run_folder(const plan::LaunchPlan& plan, const plan::Machine& machine) {
  storage::RunDirectoryOptions options;
  options.output = plan.options.output.directory;
  options.run_id = folder_prefix(plan, machine) + plan.run_id;
  options.name = plan.options.output.name;
  options.log_dir = plan.options.output.log_dir;
  options.is_latest = !machine.environment.contains("TAAS_RUN_ID");
  return storage::create_run_directory(std::move(options));
}

}  // namespace taas::node
