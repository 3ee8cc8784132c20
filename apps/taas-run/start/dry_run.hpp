#pragma once

#include <string>
#include <vector>

#include "plan/launch_plan.hpp"

namespace taas::cli {

/// What --dry-run prints: nodes, ranks, cores, command, output folder and each rank's environment; as one JSON object
/// with --json. What only a real start decides stands in angle brackets.
std::string dry_run(const plan::LaunchPlan& plan, const plan::Machine& machine,
                    const std::vector<std::string>& command);

}  // namespace taas::cli
