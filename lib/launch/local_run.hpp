#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/host_starter.hpp"
#include "net/secret.hpp"
#include "plan/launch_plan.hpp"
#include "plan/program/program.hpp"
#include "proc/family/keeper.hpp"
#include "run/events/events.hpp"

namespace taas::launch {

/// CPU machines of their own beside ranks on this one.
struct DataHosts {
  std::vector<HostEntry> hosts;
  net::Secret secret;
  std::vector<std::string> listen_addresses;  ///< numeric; agents try each
  std::string working_directory;
};

/// A run of which every node is this machine: coordinator and agent are one process.
struct LocalRunOptions {
  plan::LaunchPlan plan;
  plan::Machine machine;
  plan::ResolvedProgram program;  ///< what every rank runs
  run::RunStarted started;        ///< what the journal begins with; its instant is set here
  std::optional<DataHosts> data_hosts;
};

/// Returns the exit code. An error is of the time before the first rank (folder, port): nobody has been told of it yet.
Result<int> run_on_this_machine(LocalRunOptions options, Lifeline lifeline);

}  // namespace taas::launch
