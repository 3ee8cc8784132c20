#include "run/coordinator/members.hpp"

#include <algorithm>
#include <utility>

namespace taas::run {

void Members::begin(Generation generation) {
  generation_ = generation;
  members_.clear();
}

void Members::seat(const std::vector<AgentId>& agent_of_node, const std::vector<NodeShare>& shares) {
  agent_of_node_ = agent_of_node;
  agent_of_rank_.clear();
  for (const auto& share : shares) {
    AgentId agent = agent_of_node[static_cast<std::size_t>(share.node.value)];
    members_[agent].shares.push_back(share);
    agent_of_rank_.insert(agent_of_rank_.end(), static_cast<std::size_t>(share.local_world_size), agent);
  }
}

void Members::start() {
  started_ = decisions_.now();
  gone_wanted_ = false;
}

std::map<AgentId, StartRanks> Members::starts(const MeetingPoint& meeting_point) const {
  auto nodes = static_cast<int>(agent_of_node_.size());
  auto world = static_cast<int>(agent_of_rank_.size());
  std::map<AgentId, StartRanks> starts;
  for (const auto& [agent, member] : members_) {
    starts[agent] = {
        generation_,           world, nodes, member.shares, meeting_point.master_addr, meeting_point.master_port,
        meeting_point.servers, {},    {-1}};
  }
  return starts;
}

int Members::execute(const SignalRanks& decided) {
  int told = 0;
  std::map<AgentId, std::vector<Rank>> ranks_of;
  for (Rank rank : decided.ranks) ranks_of[agent_of_rank_.at(static_cast<std::size_t>(rank.value))].push_back(rank);
  for (auto& [agent, ranks] : ranks_of) {
    if (members_.at(agent).gone) continue;
    agents_.send(agent,
                 SignalRanks{decided.generation, std::move(ranks), decided.signal, decided.to_end, decided.sent});
    ++told;
  }
  return told;
}

/// To those on which something of the generation may live.
int Members::send(const CoordinatorMessage& message) {
  int told = 0;
  for (const auto& [agent, member] : members_) {
    if (member.gone) continue;
    agents_.send(agent, message);
    ++told;
  }
  return told;
}

void Members::end(const CoordinatorMessage& message) {
  gone_wanted_ = true;
  send(message);
  check_gone();
}

bool Members::owns(AgentId agent, Generation of, Rank rank) const {
  auto index = static_cast<std::size_t>(rank.value);
  bool known = of == generation_ && members_.contains(agent) && rank.value >= 0 && index < agent_of_rank_.size();
  return known && agent_of_rank_[index] == agent;
}

/// An agent's clock is known to within half a round trip; nothing has happened before the generation or in the future.
Instant Members::plausible(Instant at) const {
  return std::clamp(at, std::min(started_, decisions_.now()), decisions_.now());
}

template <class Message>
void Members::report_rank(AgentId agent, Message message) {
  if (!owns(agent, message.generation, message.rank)) return;
  message.at = plausible(message.at);
  decisions_.report(std::move(message));
}

template void Members::report_rank(AgentId, RankSpawned);
template void Members::report_rank(AgentId, RankSpawnFailed);

template <class Message>
void Members::report_words(AgentId agent, Message message) {
  auto& first_error = message.evidence.first_error_at;
  if (first_error != Instant{}) first_error = std::min(plausible(first_error), plausible(message.at));
  report_rank(agent, std::move(message));
}

template void Members::report_words(AgentId, RankExited);
template void Members::report_words(AgentId, RankLingers);

template <class Message>
void Members::report_store(AgentId agent, Message message) {
  bool first = !agent_of_node_.empty() && agent_of_node_.front() == agent;
  if (message.generation != generation_ || !first) return;
  message.at = plausible(message.at);
  decisions_.report(message);
}

template void Members::report_store(AgentId, StoreReached);
template void Members::report_store(AgentId, RankJoined);

void Members::on(AgentId agent, const GenerationGone& message) {
  auto member = members_.find(agent);
  if (message.generation != generation_ || member == members_.end()) return;
  member->second.gone = true;
  check_gone();
}

void Members::lose(AgentId agent, const std::string& hostname, const AgentLoss& loss, bool replaceable) {
  auto& member = members_.at(agent);
  member.gone_at = loss.gone_at;
  for (const auto& share : member.shares) {
    decisions_.report(NodeLost{generation_, share.node, hostname, loss.reason, loss.last_sign_of_life, replaceable,
                               decisions_.now()});
  }
}

bool Members::waits_for_silent() const {
  return std::any_of(members_.begin(), members_.end(), [this](const auto& entry) {
    const auto& [agent, member] = entry;
    return !member.gone && (member.gone_at || agents_.silence().is_silent(agent));
  });
}

void Members::check_gone() {
  bool all = true;
  check_gone_at_.reset();
  for (auto& [agent, member] : members_) {
    member.gone = member.gone || (member.gone_at && *member.gone_at <= decisions_.now());
    all = all && member.gone;
    bool sooner = member.gone_at && (!check_gone_at_ || *member.gone_at < *check_gone_at_);
    if (!member.gone && sooner) check_gone_at_ = member.gone_at;
  }
  if (!all || members_.empty() || !std::exchange(gone_wanted_, false)) return;
  decisions_.report(GenerationGone{generation_, decisions_.now()});
}

}  // namespace taas::run
