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

/// How a process notices that it did not run.
struct StallWatch {
  Duration tick;         ///< it looks at the clock so often
  Duration longest_gap;  ///< and when it did not look for so long, it did not run
};

/// An agent that was not answered for half of the time after which it counts as lost, or a little more, kills its
/// ranks: a stall is noticed before that, even when it begins right after a tick.
StallWatch stall_watch(const run::CoordinatorPolicy& policy);

/// Where agents that this process starts find it.
node::Bootstrap meeting_point(const plan::Options& options, const net::Secret& secret,
                              std::vector<std::string> addresses, std::uint16_t port);

}  // namespace taas::launch
