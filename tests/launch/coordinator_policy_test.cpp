#include "launch/coordinator_policy.hpp"

#include "catch.hpp"
#include "node/agent_policy.hpp"
#include "run/coordinator/silence.hpp"

namespace coordinator_policy_test {

using namespace taas;
using namespace std::chrono_literals;

TEST_CASE("the coordinator notices that it stood still before any agent gives it up, and excuses that agent") {
  for (auto node_timeout : {500ms, 2500ms, 8000ms, 120'000ms}) {
    run::CoordinatorPolicy policy;
    policy.lost_after = node_timeout;
    const auto watch = launch::stall_watch(policy);
    const auto agent = node::agent_policy(node_timeout, false);
    const Duration shortest = agent.fence_after() - agent.heartbeat_interval;  // its last answer may be a heartbeat old
    CHECK(watch.longest_gap < shortest);
    run::Silence silence({policy.lost_after, policy.closed_grace});
    silence.on_sign_of_life(run::AgentId{1}, Instant{});
    CHECK(silence.excuse(shortest, Instant{} + shortest));
  }
}

}  // namespace coordinator_policy_test
