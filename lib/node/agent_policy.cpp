#include "node/agent_policy.hpp"

#include <algorithm>

namespace taas::node {
namespace {

constexpr int kHeartbeats = 10;  // at least, in the time after which a silent node is given up
constexpr auto kLongestInterval = std::chrono::milliseconds(250);

}  // namespace

run::EchoPolicy job_echo(bool in_step) { return {std::chrono::seconds(2), in_step}; }

run::AgentPolicy agent_policy(std::chrono::milliseconds node_timeout, bool in_step) {
  run::AgentPolicy policy;
  if (in_step) policy.echo = job_echo(in_step);
  policy.heartbeat_interval = std::min<Duration>(node_timeout / kHeartbeats, kLongestInterval);
  policy.lost_after = node_timeout;
  return policy;
}

}  // namespace taas::node
