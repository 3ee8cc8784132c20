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

/// One of this user's alone; where there is none, one that cannot be made.
std::string temporary_folder(const plan::Machine& machine) {
  auto chosen = value_of(machine.environment, "TMPDIR");
  auto parent = runtime_folder({}, chosen.empty() ? "/tmp" : chosen);
  return parent ? *parent : "/proc";
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
  if (!chosen) {
    options.otherwise = [&] { return plan.options.output.log_dir.value_or(temporary_folder(machine)) + "/taas-runs"; };
  }
  options.is_latest = !machine.environment.contains("TAAS_RUN_ID");
  return storage::create_run_directory(std::move(options));
}

}  // namespace taas::node
