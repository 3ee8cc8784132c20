#pragma once

#include <string>
#include <vector>

#include "base/environment/environment.hpp"
#include "base/error.hpp"
#include "plan/launch_plan.hpp"
#include "run/check/findings.hpp"

namespace taas::cli {

/// The first word of `taas-run check [flags of a run] [PROGRAM]`.
inline constexpr const char* kCheck = "check";

/// Looks at this machine, which is the only one of the plan. Prints what is found: all that there is where nothing is
/// to be started, else what is wrong. Whether ranks may start.
bool check_this_machine(const plan::LaunchPlan& plan, plan::Machine machine);

/// Prints what was found on the nodes of a plan that starts nothing.
void print_check(const run::CheckReport& report, const plan::OutputOptions& output, const Environment& environment);

/// Checks with these arguments, in a process of its own, and without --speed. Returns its exit code.
Result<int> check_before_speed(std::vector<std::string> arguments);

/// What is run for --speed in place of a program.
plan::ProgramOptions speed_program();

/// What an agent has a child do (node/check/examiner.hpp). Returns the exit code.
int examine_for_agent(const Environment& environment);

}  // namespace taas::cli
