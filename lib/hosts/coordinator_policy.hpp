#pragma once

#include <string>
#include <vector>

#include "hosts/bootstrap.hpp"
#include "net/secret.hpp"
#include "plan/launch_plan.hpp"
#include "run/coordinator.hpp"

namespace taas::hosts {

/// The plan as the run's logic sees it. `launch` and `in_process` are left to the caller.
run::CoordinatorPolicy coordinator_policy(const plan::LaunchPlan& plan);

/// Where agents that this process starts find it.
Bootstrap meeting_point(const plan::NodesOptions& nodes, const net::Secret& secret, std::vector<std::string> addresses,
                        std::uint16_t port);

}  // namespace taas::hosts
