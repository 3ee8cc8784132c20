#pragma once

#include <string>
#include <vector>

#include "plan/launch_plan.hpp"

namespace taas::cli {

/// What --dry-run prints: nodes, ranks, cores, command, output folder and the main variables of rank 0, on a screen of
/// 24 lines; with --verbose all variables, also those of other ranks; with --json one object of everything. What only a
/// real start decides stands in angle brackets.
std::string dry_run(const plan::LaunchPlan& plan, const plan::Machine& machine,
                    const std::vector<std::string>& command);

}  // namespace taas::cli
