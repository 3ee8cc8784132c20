#include "launch/coordinator_policy.hpp"

#include <algorithm>
#include <csignal>

#include "base/version.hpp"
#include "net/addresses.hpp"
#include "node/agent_policy.hpp"
#include "plan/launch_mode/rendezvous.hpp"

namespace taas::launch {
namespace {

constexpr auto kAnswerPatience = std::chrono::seconds(10);  // ssh gives a silent host up after eight
constexpr Duration kLongestTick = std::chrono::milliseconds(250);
/// SLURM's own SIGKILL comes 30 s after its SIGTERM, unless the site's KillWait is another.
constexpr std::chrono::milliseconds kJobPatience = std::chrono::seconds(25);

run::Policy run_policy(const plan::LaunchPlan& plan) {
  run::Policy policy;
  policy.world_size = plan.world_size();
  for (const auto& rank : plan.ranks) policy.node_of_rank.push_back(rank.node);
  // A Python program joins a process group soon after its start, or never will. TensorFlow's do without the store.
  policy.startup_needs_store = plan::is_python(plan.options.program) &&
                               plan::launcher_serves_store(plan.options, plan.world_size()) &&
                               plan.options.frameworks.framework != plan::Framework::kTensorFlow;
  policy.shares_gpus = plan.options.size.oversubscribe;
  const bool in_job = plan.job || plan.data.staged;  // jobs, in the second case, whose nodes are told of their end
  if (in_job) policy.echo = node::job_echo(plan.job && plan.job->step);
  if (in_job) policy.preempt_signals = {plan.options.slurm.preempt_signal, SIGUSR1, SIGUSR2};
  policy.max_restarts = plan.options.supervision.max_restarts;
  policy.restart_interval = plan.options.supervision.monitor_interval;
  policy.shutdown_timeout = plan.options.supervision.shutdown_timeout;
  policy.leftover_timeout = plan.options.supervision.leftover_timeout;
  policy.exit_timeout = plan.options.supervision.exit_timeout;
  if (policy.exit_timeout.count() > 0) policy.straggler_notice_after = policy.exit_timeout;
  if (in_job) policy.shutdown_timeout = std::min(policy.shutdown_timeout, kJobPatience);
  if (const auto& chosen = plan.options.supervision.signals_to_handle; !chosen.empty()) policy.stop_signals = chosen;
  return policy;
}

}  // namespace

run::CoordinatorPolicy coordinator_policy(const plan::LaunchPlan& plan) {
  const auto& nodes = plan.options.nodes;
  run::CoordinatorPolicy policy;
  policy.run = run_policy(plan);
  for (const auto& node : plan.nodes) policy.ranks_on_node.push_back(node.local_world_size);
  policy.host_names = plan.hosts;
  policy.this_machine = net::loopback_address();
  policy.nodes_count_themselves = plan.nodes_count_themselves;
  policy.min_nodes = std::min(plan.min_nodes, static_cast<int>(plan.nodes.size()));
  policy.expected_agents = plan.expected_agents;
  policy.version = kLauncherVersion;
  policy.lost_after = nodes.node_timeout;
  policy.closed_grace = 2 * node::agent_policy(nodes.node_timeout, false).heartbeat_interval;
  policy.gather_timeout = nodes.join_timeout;
  if (std::holds_alternative<plan::OverSsh>(plan.launch_mode)) policy.answer_patience = kAnswerPatience;
  policy.tells_verdict = std::holds_alternative<plan::Join>(plan.launch_mode);
  // A batch system that tells one node to stop means the job.
  policy.nodes_may_leave =
      std::holds_alternative<plan::Join>(plan.launch_mode) || std::holds_alternative<plan::OverSsh>(plan.launch_mode);
  policy.elastic_wait = nodes.elastic_wait;
  policy.loader = plan.options.data.loader;
  policy.data.names = plan.data.names();
  policy.data.nodes = plan.data.staged ? plan.data.count : static_cast<int>(policy.data.names.size());
  policy.nodes_are_held = plan.data.staged;
  policy.data.first_order = plan.expected_agents;
  return policy;
}

StallWatch stall_watch(const run::CoordinatorPolicy& policy) {
  const auto tick = std::min<Duration>(policy.lost_after / 10, kLongestTick);
  return {tick, 4 * tick};
}

node::Bootstrap meeting_point(const plan::Options& options, const net::Secret& secret,
                              std::vector<std::string> addresses, std::uint16_t port) {
  node::Bootstrap bootstrap;
  bootstrap.run_id = secret.run_id;
  bootstrap.key = net::print_key(secret.key);
  bootstrap.addresses = std::move(addresses);
  bootstrap.port = port;
  bootstrap.interface = options.nodes.interface;
  bootstrap.node_timeout_ms = static_cast<int>(options.nodes.node_timeout.count());
  bootstrap.log_level = options.output.log_level;
  return bootstrap;
}

}  // namespace taas::launch
