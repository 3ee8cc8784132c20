#pragma once

#include "plan/launch_plan.hpp"
#include "plan/program/program.hpp"

namespace taas::cli {

/// Whether this machine has what --interface, --local-addr and, for a run on this machine alone, --master-addr name.
/// Asks the name server where one of them is a name.
Result<> check_own_network(const plan::LaunchPlan& plan, const plan::Machine& machine);

/// Sandboxes without a network (Nix, Bazel, `unshare -n`) have loopback, and nobody has set it up. A program that
/// trains would wait in vain for its store; any other is started, with a notice.
Result<> check_loopback(plan::LaunchPlan& plan, const plan::ResolvedProgram& program);

}  // namespace taas::cli
