#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "run/coordinator/coordinator_state.hpp"
#include "run/coordinator/nearest_address.hpp"

namespace taas::run {
namespace {

constexpr auto kNoticeAfter = std::chrono::seconds(10);
constexpr int kMostRanksOfNode = 65536;

std::vector<AgentId> distinct(std::vector<AgentId> agents) {
  std::sort(agents.begin(), agents.end());
  agents.erase(std::unique(agents.begin(), agents.end()), agents.end());
  return agents;
}

}  // namespace

void Coordinator::State::carry_out(const GatherNodes& decided) {
  emit(Action(decided));
  gathering = true;
  gathering_since = now;
  generation = decided.generation;
  members.clear();
  part_with_leaving();
  membership.begin(decided.generation, now);
  gather_notice_at = now + kNoticeAfter;
  try_gather();
}

void Coordinator::State::try_gather() {
  if (!gathering || finished) return;
  if (gather_notice_at && *gather_notice_at <= now) {
    gather_notice_at.reset();
    bool preparing = preparation_told && generation.value == 0;
    if (!preparing) notify(fmt::format("waiting for nodes: {}", membership.who_is_missing()));
  }
  auto found = membership.gather(now);
  gather_at.reset();
  if (const auto* wait = std::get_if<WaitForNodes>(&found)) {
    gather_at = wait->until;
  } else if (auto* failed = std::get_if<GatherFailed>(&found)) {
    gathering = false;
    supervise(std::move(*failed));
  } else {
    gathered(std::get<Chosen>(found));
  }
}

/// Once all of them reach the first one, they are the nodes.
void Coordinator::State::gathered(const Chosen& chosen) {
  auto parties = distinct(chosen.agent_of_node);
  const auto& first = agents.at(chosen.agent_of_node.front());
  reach.aim(chosen.agent_of_node.front(), first.hello.addresses, first.store_port);
  if (!find_address(parties) || !loader_is_prepared()) return;
  gathering = false;
  master_port = first.store_port;
  membership.seat(chosen.agent_of_node);
  agent_of_node = chosen.agent_of_node;
  agent_of_rank.clear();
  NodesGathered news{0, {}, {}, now};
  for (std::size_t node = 0; node < agent_of_node.size(); ++node) {
    AgentId agent = agent_of_node[node];
    NodeIndex index{static_cast<int>(node)};
    int ranks = ranks_of(agent, node);
    members[agent].shares.push_back({index, Rank{news.world_size}, ranks});
    news.world_size += ranks;
    news.node_of_rank.insert(news.node_of_rank.end(), static_cast<std::size_t>(ranks), index);
    agent_of_rank.insert(agent_of_rank.end(), static_cast<std::size_t>(ranks), agent);
    if (!policy.in_process) news.node_names.push_back(agents.at(agent).hello.hostname);
  }
  servers = servers_of_ranks();
  supervise(std::move(news));
}

int Coordinator::State::ranks_of(AgentId agent, std::size_t node) const {
  int own = policy.nodes_count_themselves ? agents.at(agent).hello.ranks : 0;
  return own > 0 ? std::min(own, kMostRanksOfNode) : policy.ranks_on_node[node];
}

/// Each node's ports in the order of its ranks, at its address in the network of the first node.
std::vector<std::string> Coordinator::State::servers_of_ranks() const {
  std::map<AgentId, std::size_t> taken;
  std::vector<std::string> all;
  for (AgentId agent : agent_of_rank) {
    const auto& [hello, store_port, ports, heard, folder] = agents.at(agent);
    auto next = taken[agent]++;
    if (next >= ports.size()) return {};
    all.push_back(endpoint_of(nearest_address(hello.addresses, master_addr), ports[next]));
  }
  return all;
}

/// In one process, and for nodes that know no address of their own, there is nothing to find out.
bool Coordinator::State::find_address(const std::vector<AgentId>& parties) {
  master_addr = "127.0.0.1";
  if (policy.in_process || reach.addresses().empty()) return true;
  for (AgentId agent : reach.to_ask(parties, now))
    tell(agent, ProbeAddresses{reach.addresses(), reach.port(), reach.probe()});
  if (!reach.complete(parties)) return false;
  auto common = reach.common(parties);
  if (!common) tell_unreachable(parties);
  master_addr = common.value_or("");
  return common.has_value();
}

void Coordinator::State::tell_unreachable(const std::vector<AgentId>& parties) {
  gathering = false;
  const auto& odd = agents.at(reach.odd_one_out(parties)).hello;
  const auto& first = agents.at(reach.target()).hello;
  auto text = fmt::format("{} cannot reach {}: no connection to port {} of {}", odd.hostname, first.hostname,
                          reach.port(), fmt::join(reach.addresses(), ", "));
  supervise(GatherFailed{text, "a firewall may be between them; --interface chooses the network", 1, now});
}

void Coordinator::State::carry_out(const StartGeneration& decided) {
  emit(Action(decided));
  started = now;
  gone_wanted = false;
  assign_output();
  for (const auto& [agent, member] : members) tell(agent, start_of(agent, member));
}

StartRanks Coordinator::State::start_of(AgentId agent, const Member& member) const {
  auto nodes = static_cast<int>(agent_of_node.size());
  auto world = static_cast<int>(agent_of_rank.size());
  return {generation, world, nodes, member.shares, master_addr, master_port, servers, duty_of(agent)};
}

}  // namespace taas::run
