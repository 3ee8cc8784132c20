#pragma once

#include "plan/launch_plan.hpp"

namespace taas::cli {

/// Whether this machine has what --interface, --local-addr and, for a run on this machine alone, --master-addr name.
/// Asks the name server where one of them is a name.
Result<> check_own_network(const plan::LaunchPlan& plan, const plan::Machine& machine);

}  // namespace taas::cli
