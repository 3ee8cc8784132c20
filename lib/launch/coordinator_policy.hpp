#pragma once

#include <string>
#include <vector>

#include "net/secret.hpp"
#include "node/bootstrap.hpp"
#include "plan/launch_plan.hpp"
#include "run/coordinator/coordinator.hpp"

namespace taas::launch {

/// The plan as the run's logic sees it. `launch` and `in_process` are left to the caller.
run::CoordinatorPolicy coordinator_policy(const plan::LaunchPlan& plan);

/// Where agents that this process starts find it.
node::Bootstrap meeting_point(const plan::Options& options, const net::Secret& secret,
                              std::vector<std::string> addresses, std::uint16_t port);

}  // namespace taas::launch
