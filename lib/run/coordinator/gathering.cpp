#include "run/coordinator/gathering.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "run/coordinator/nodes/nearest_address.hpp"

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

Gathering::Gathering(const CoordinatorPolicy& policy, Decisions& decisions, Agents& agents, Membership& membership,
                     Members& members, LoaderWait& loader)
    : policy_(policy),
      decisions_(decisions),
      agents_(agents),
      membership_(membership),
      members_(members),
      loader_(loader) {}

void Gathering::begin(Generation generation) {
  active_ = true;
  generation_ = generation;
  since_ = decisions_.now();
  bool in_queue = policy_.nodes_are_held && generation.value == 0;
  if (!in_queue) notice_at_ = since_ + kNoticeAfter;
  members_.begin(generation);
  membership_.begin(generation, since_);
}

void Gathering::advance() {
  if (!active_ || decisions_.finished()) return;
  if (!nodes_over_.empty()) return fail(nodes_over_, generation_.value == 0 ? kUsageExitCode : 1);
  tell_who_is_missing();
  ask_again_at_.reset();
  release_nodes();
  if (!active_) return;
  auto found = membership_.choose(decisions_.now());
  if (const auto* wait = std::get_if<WaitForNodes>(&found)) {
    ask_again_at_ = earliest({ask_again_at_, wait->until});
  } else if (auto* failed = std::get_if<GatherFailed>(&found)) {
    active_ = false;
    decisions_.report(std::move(*failed));
  } else {
    meet(std::get<Chosen>(found).agent_of_node);
  }
}

void Gathering::tell_who_is_missing() {
  if (!notice_at_ || *notice_at_ > decisions_.now()) return;
  notice_at_.reset();
  bool preparing = loader_.announced() && generation_.value == 0;
  if (!preparing) decisions_.notify(fmt::format("waiting for nodes: {}", membership_.who_is_missing()));
}

/// Whether or not some are there already: the user may have let them go.
void Gathering::release_nodes() {
  if (!policy_.nodes_are_held || released_ || !loader_is_prepared()) return;
  released_ = true;
  decisions_.emit(ReleaseNodes{});
}

void Gathering::on(const NodesOver& event) {
  nodes_over_ = event.why;
  advance();
}

void Gathering::fail(std::string why, int exit_code) {
  if (!std::exchange(active_, false)) return;
  decisions_.report(GatherFailed{std::move(why), "", exit_code, decisions_.now()});
}

/// Once all of them reach the first one, they are the nodes.
void Gathering::meet(const std::vector<AgentId>& agent_of_node) {
  AgentId first = agent_of_node.front();
  const auto& known = agents_.at(first);
  reach_.aim(first, known.hello.addresses, known.store_port);
  if (find_address(distinct(agent_of_node)) && loader_is_prepared()) conclude(agent_of_node);
}

/// In one process, and for nodes that know no address of their own, there is nothing to find out.
bool Gathering::find_address(const std::vector<AgentId>& parties) {
  meeting_point_.master_addr = policy_.this_machine;
  if (policy_.in_process || reach_.addresses().empty()) return true;
  for (AgentId agent : reach_.to_ask(parties, decisions_.now())) {
    agents_.send(agent, ProbeAddresses{reach_.addresses(), reach_.port(), reach_.probe()});
  }
  if (!reach_.complete(parties)) return false;
  auto common = reach_.common(parties);
  if (!common) tell_unreachable(parties);
  meeting_point_.master_addr = common.value_or("");
  return common.has_value();
}

void Gathering::tell_unreachable(const std::vector<AgentId>& parties) {
  active_ = false;
  const auto& odd = agents_.at(reach_.odd_one_out(parties)).hello;
  const auto& first = agents_.at(reach_.target()).hello;
  auto text = fmt::format("{} cannot reach {}: no connection to port {} of {}", odd.hostname, first.hostname,
                          reach_.port(), fmt::join(reach_.addresses(), ", "));
  auto hint = "a firewall may be between them; --interface chooses the network";
  decisions_.report(GatherFailed{text, hint, 1, decisions_.now()});
}

bool Gathering::loader_is_prepared() {
  if (generation_.value > 0 || released_) return true;
  auto found = loader_.check(since_);
  if (found.ask_again_at) ask_again_at_ = found.ask_again_at;
  if (!found.failure.empty()) fail(found.failure, kUsageExitCode);
  return found.prepared;
}

void Gathering::conclude(const std::vector<AgentId>& agent_of_node) {
  active_ = false;
  membership_.seat(agent_of_node);
  auto shares = share_ranks(count_ranks(agent_of_node));
  members_.seat(agent_of_node, shares);
  meeting_point_.master_port = agents_.at(agent_of_node.front()).store_port;
  meeting_point_.servers = servers_of_ranks();
  NodesGathered news{world_size_of(shares), node_of_rank(shares), {}, decisions_.now()};
  for (AgentId agent : agent_of_node) {
    if (!policy_.in_process) news.node_names.push_back(agents_.at(agent).hello.hostname);
  }
  decisions_.report(std::move(news));
}

std::vector<int> Gathering::count_ranks(const std::vector<AgentId>& agent_of_node) const {
  std::vector<int> counts;
  for (AgentId agent : agent_of_node) {
    int own = policy_.nodes_count_themselves ? agents_.at(agent).hello.ranks : 0;
    counts.push_back(own > 0 ? std::min(own, kMostRanksOfNode) : policy_.ranks_on_node[counts.size()]);
  }
  return counts;
}

/// Each node's ports in the order of its ranks, at its address in the network of the first node.
std::vector<std::string> Gathering::servers_of_ranks() const {
  std::map<AgentId, std::size_t> taken;
  std::vector<std::string> all;
  for (AgentId agent : members_.agent_of_rank()) {
    const auto& known = agents_.at(agent);
    auto next = taken[agent]++;
    if (next >= known.rank_ports.size()) return {};
    auto address = nearest_address(known.hello.addresses, meeting_point_.master_addr);
    all.push_back(endpoint_of(address, known.rank_ports[next]));
  }
  return all;
}

void Gathering::on(AgentId agent, const AddressesReached& message) {
  reach_.answer(agent, message.probe, message.addresses);
  if (!reach_.waiting()) advance();
}

std::optional<Instant> Gathering::next_check() const {
  if (!active_) return std::nullopt;
  return earliest({ask_again_at_, notice_at_, reach_.next_expiry()});
}

}  // namespace taas::run
