#include "start/serve.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <utility>

#include "base/environment/environment.hpp"
#include "node/agent_process.hpp"
#include "plan/options/launch_settings.hpp"
#include "proc/family/keeper.hpp"
#include "slurm/meeting.hpp"
#include "slurm/staged_jobs.hpp"
#include "start/local_programs.hpp"

namespace taas::cli {
namespace {

constexpr std::chrono::milliseconds kPatienceOfSecondStart = std::chrono::seconds(1);

/// An agent that the launcher has started takes the user's environment over as well.
Result<plan::ResolvedProgram> resolve_as_caller(const node::Launch& launch, plan::Machine& machine) {
  plan::bring_along(launch.settings.environment, machine.environment);
  return resolve_here(launch, machine);
}

}  // namespace

std::string take_token(plan::Machine& machine) {
  auto token = machine.environment.extract(plan::kTokenVariable);
  ::unsetenv(plan::kTokenVariable);  // nor have ssh, srun and the agents that this process starts
  return token ? std::move(token.mapped()) : std::string();
}

Result<plan::ResolvedProgram> resolve_here(const node::Launch& launch, plan::Machine& machine) {
  std::error_code failed;
  std::filesystem::current_path(launch.settings.working_directory, failed);
  if (failed) {
    return system_error(fmt::format("the working directory {} cannot be used there", launch.settings.working_directory),
                        failed.value());
  }
  return plan::resolve_program(launch.settings.options, LocalPrograms(machine.environment));
}

Result<int> serve(node::Bootstrap bootstrap, plan::Machine machine, Resolve resolve) {
  auto lifeline = become_kept();
  if (!lifeline) return lifeline.error();
  auto code =
      node::serve_as_agent({std::move(bootstrap), std::move(machine), std::move(resolve)}, std::move(*lifeline));
  if (!code) return code.error();
  return code->value();
}

Result<int> serve_as_called(node::Bootstrap bootstrap, plan::Machine machine) {
  return serve(std::move(bootstrap), std::move(machine), resolve_here);
}

Result<int> run_as_agent(plan::Machine machine) {
  take_token(machine);
  std::string line;
  std::getline(std::cin, line);
  auto bootstrap = node::parse_bootstrap(line);
  if (!bootstrap) return bootstrap.error();
  if (bootstrap->order < 0) {
    auto node = slurm_node(machine.environment);
    bootstrap->order = node < 0 ? node : node + bootstrap->order_base;
  }
  if (bootstrap->name.empty()) bootstrap->name = value_of(machine.environment, "SLURMD_NODENAME");
  return serve(std::move(*bootstrap), std::move(machine), resolve_as_caller);
}

Result<int> run_as_staged_node(const plan::Options& options, plan::Machine machine) {
  take_token(machine);
  auto job = options.slurm.held_job.value_or(value_of(machine.environment, "SLURM_JOB_ID"));
  bool again = !value_of(machine.environment, "SLURM_RESTART_COUNT").empty();  // then its run is there, or over
  auto bootstrap =
      meeting_file(options.output.directory, job).await(again ? kPatienceOfSecondStart : options.nodes.join_timeout);
  if (!bootstrap) return bootstrap.error();
  bootstrap->data = options.slurm.staged_node == kDataNode;
  bootstrap->order = slurm_node(machine.environment) + (bootstrap->data ? bootstrap->order_base : 0);
  bootstrap->name = value_of(machine.environment, "SLURMD_NODENAME");
  return serve(std::move(*bootstrap), std::move(machine), resolve_as_caller);
}

}  // namespace taas::cli
