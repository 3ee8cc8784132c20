#pragma once

#include <map>
#include <string>
#include <vector>

#include "hosts/bootstrap.hpp"
#include "net/secret.hpp"
#include "plan/launch_plan.hpp"
#include "run/agent.hpp"
#include "run/coordinator.hpp"

namespace taas::hosts {

/// The plan as the run's logic sees it. `launch` and `in_process` are left to the caller.
run::CoordinatorPolicy coordinator_policy(const plan::LaunchPlan& plan);

/// An agent fences itself well before the coordinator gives it up. `in_step`: SLURM started it.
run::AgentPolicy agent_policy(std::chrono::milliseconds node_timeout, bool in_step);

/// Where agents that this process starts find it.
Bootstrap meeting_point(const plan::NodesOptions& nodes, const net::Secret& secret, std::vector<std::string> addresses,
                        std::uint16_t port);

/// "NAME=value" each.
std::vector<std::string> as_list(const std::map<std::string, std::string>& environment);

}  // namespace taas::hosts
