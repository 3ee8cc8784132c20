#pragma once

#include <string>
#include <vector>

#include "plan/launch_plan.hpp"
#include "plan/program.hpp"
#include "proc/keeper.hpp"

namespace taas::hosts {

/// A run of which every node is this machine: coordinator and agent are one process.
struct LocalRunOptions {
  plan::LaunchPlan plan;
  plan::Machine machine;
  plan::ResolvedProgram program;  ///< what every rank runs
};

/// Returns the exit code. An error is of the time before the first rank (folder, port): nobody has been told of it yet.
Result<int> run_on_this_machine(LocalRunOptions options, Lifeline lifeline);

}  // namespace taas::hosts
