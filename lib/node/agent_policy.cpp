#include "node/agent_policy.hpp"

#include <algorithm>

namespace taas::node {
namespace {

constexpr int kHeartbeats = 10;  // in the time after which a silent node is given up
constexpr auto kLongestInterval = std::chrono::milliseconds(1000);

}  // namespace

run::EchoPolicy job_echo(bool in_step) { return {std::chrono::seconds(2), in_step}; }

run::AgentPolicy agent_policy(std::chrono::milliseconds node_timeout, bool in_step) {
  run::AgentPolicy policy;
  if (in_step) policy.echo = job_echo(in_step);
  policy.heartbeat_interval = std::min<Duration>(node_timeout / kHeartbeats, kLongestInterval);
  policy.fence_after = node_timeout * 6 / 10;
  return policy;
}

}  // namespace taas::node
