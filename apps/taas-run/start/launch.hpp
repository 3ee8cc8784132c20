#pragma once

#include <string>
#include <vector>

#include "plan/launch_plan.hpp"
#include "plan/program/program.hpp"

namespace taas::cli {

/// What a launch needs beside its plan.
struct Launching {
  plan::LaunchPlan plan;
  plan::Machine machine;
  plan::ResolvedProgram program;       ///< of the ranks, as found on this machine; empty where they run elsewhere
  std::vector<std::string> arguments;  ///< of this launcher, as they were given
  std::string token = {};              ///< launch() takes it out of the machine's environment
};

/// Carries the plan out in its way onto nodes. Returns the exit code; an error means that nothing was started. Where
/// processes are to be supervised, it goes on in a child of this one.
Result<int> launch(Launching launching);

/// There is no plan for this task of a SLURM step: the others are told, so that they do not wait for it. Returns when
/// they know, or after a minute.
void refuse_in_step(const plan::Options& options, plan::Machine machine, const Error& error);

}  // namespace taas::cli
