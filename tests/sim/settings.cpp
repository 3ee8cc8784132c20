#include "settings.hpp"

#include <csignal>

namespace taas::sim {
namespace {

using namespace std::chrono_literals;

constexpr Duration kToBeAsked = 4s;  // of an agent's patience, for other stalls, a connection and the answer

void set_node_timeout(Settings& settings, Duration timeout) {
  settings.policy.lost_after = timeout;
  settings.agent.lost_after = timeout;
}

void draw_sizes(Random& random, Settings& settings) {
  auto& policy = settings.policy;
  int nodes = random.between(1, 6);
  policy.ranks_on_node.assign(static_cast<std::size_t>(nodes), random.between(1, 4));
  policy.min_nodes = random.chance(40) ? random.between(1, nodes) : nodes;
  settings.nodes = nodes + (random.chance(40) ? random.between(1, 2) : 0);
  policy.expected_agents = settings.nodes;
}

void draw_data(Random& random, Settings& settings) {
  if (random.chance(50)) return;
  settings.data_nodes = random.between(1, 3);
  settings.policy.data.nodes = settings.data_nodes;
  settings.policy.data.first_order = settings.nodes;
  if (random.chance(30)) settings.policy.loader = "data:train";
}

void draw_patience(Random& random, Settings& settings) {
  auto& policy = settings.policy;
  policy.run.max_restarts = random.between(0, 3);
  policy.run.shutdown_timeout = std::chrono::milliseconds(random.between(1, 5000));
  policy.run.exit_timeout = std::chrono::milliseconds(random.between(1, 20000));
  policy.run.startup_needs_store = random.chance(20);
  policy.gather_timeout = std::chrono::seconds(random.between(10, 60));
  policy.elastic_wait = std::chrono::seconds(random.between(1, 10));
}

}  // namespace

void draw_slowness(Random& random, Settings& settings) {
  if (random.chance(30)) settings.stalls = random.between(1, 3);
  settings.longest_stall = random.chance(70) ? kHarmlessStall : settings.policy.lost_after + 5500ms;
  constexpr Duration kDisks[]{0s, 20ms, 5s};
  settings.disk = kDisks[random.between(0, 2)];
  settings.long_words = random.chance(30) ? 50 : 0;
}

Settings draw_settings(Random& random) {
  Settings settings;
  settings.policy.version = "1.0";
  set_node_timeout(settings, random.chance(50) ? 30s : 2500ms);
  draw_sizes(random, settings);
  draw_patience(random, settings);
  draw_data(random, settings);
  draw_slowness(random, settings);
  constexpr int kTrouble[]{0, 0, 5, 30};
  settings.rank_trouble = kTrouble[random.between(0, 3)];
  settings.node_faults = random.chance(75) ? random.between(1, 6) : 0;
  settings.versions_apart = random.chance(10) ? 20 : 0;
  settings.refusals = random.chance(10) ? 20 : 0;
  settings.policy.folder = "the coordinator's";
  constexpr int kApart[]{0, 0, 30, 100};
  settings.folders_apart = kApart[random.between(0, 3)];
  settings.kernels_apart = kApart[random.between(0, 3)];
  settings.ordered = random.chance(75);
  settings.host_starter = settings.ordered && random.chance(60);
  settings.longest_start = random.chance(80) ? Duration(2s) : Duration(40s);
  settings.work = random.up_to(2 * settings.policy.lost_after + 15s) + 500ms;
  settings.suspension = random.chance(10);
  constexpr int kSignals[]{SIGINT, SIGTERM, SIGHUP};
  if (random.chance(15)) settings.user_signal = kSignals[random.between(0, 2)];
  if (random.chance(15)) {
    settings.user_signal = SIGUSR1;
    settings.policy.run.preempt_signals = {SIGUSR1};
  }
  return settings;
}

Duration Settings::harmless() const { return agent.fence_after() - kToBeAsked; }

Settings plain_settings(int nodes, int ranks_a_node) {
  Settings settings;
  settings.nodes = nodes;
  settings.policy.version = "1.0";
  settings.policy.ranks_on_node.assign(static_cast<std::size_t>(nodes), ranks_a_node);
  settings.policy.min_nodes = nodes;
  settings.policy.expected_agents = nodes;
  settings.policy.run.max_restarts = 1;
  settings.longest_start = 500ms;
  settings.work = 1s;
  settings.calm = true;
  return settings;
}

}  // namespace taas::sim
