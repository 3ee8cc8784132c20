#include "node/preparation.hpp"

#include <unistd.h>

#include <csignal>

#include "base/environment/environment.hpp"
#include "node/process/runtime_folder.hpp"
#include "proc/family/descendants.hpp"
#include "proc/spawn/process_end.hpp"

namespace taas::node {
namespace {

constexpr auto kKillPatience = std::chrono::seconds(5);  // for processes that are stuck in the kernel

/// In a folder of this user's alone; empty where there is none.
std::string temporary_runs(const plan::Machine& machine) {
  auto chosen = value_of(machine.environment, "TMPDIR");
  auto parent = runtime_folder({}, chosen.empty() ? "/tmp" : chosen);
  return parent ? *parent + "/taas-runs" : "";
}

[[noreturn]] void end_at_once() {
  kill_and_reap_descendants(kKillPatience);
  ::_exit(128 + SIGKILL);
}

}  // namespace

void end_with_keeper(boost::asio::io_context& io, Lifeline& lifeline) { lifeline.on_keeper_death(io, end_at_once); }

Result<> end_with_process(boost::asio::io_context& io, const plan::LaunchPlan& plan) {
  int pid = plan.options.supervision.end_with;
  if (pid == 0) return {};
  auto watched = on_process_end(io, pid, end_at_once);
  return watched ? watched : std::move(watched).error().with("--end-with");
}

Result<storage::RunDirectory> create_run_folder(const plan::LaunchPlan& plan, const plan::Machine& machine) {
  storage::RunDirectoryOptions options;
  options.output = plan.options.output.directory;
  options.run_id = plan.run_id;
  options.log_dir = plan.options.output.log_dir;
  const bool chosen = options.output != plan::OutputOptions().directory;
  if (!chosen) options.otherwise = options.log_dir ? *options.log_dir + "/taas-runs" : temporary_runs(machine);
  options.is_latest = !machine.environment.contains("TAAS_RUN_ID");
  return storage::create_run_directory(std::move(options));
}

}  // namespace taas::node
