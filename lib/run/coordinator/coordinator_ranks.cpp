#include <algorithm>
#include <utility>

#include "run/coordinator/coordinator_state.hpp"

namespace taas::run {

void Coordinator::State::carry_out(const SignalRanks& decided) {
  emit(Action(decided));
  std::map<AgentId, std::vector<Rank>> ranks_of;
  for (Rank rank : decided.ranks) ranks_of[agent_of_rank.at(static_cast<std::size_t>(rank.value))].push_back(rank);
  for (auto& [agent, ranks] : ranks_of) {
    if (!members.at(agent).gone) tell(agent, SignalRanks{decided.generation, std::move(ranks), decided.signal});
  }
}

void Coordinator::State::carry_out(const KillGeneration& decided) {
  emit(Action(decided));
  gone_wanted = true;
  tell_members(decided);
  check_gone();
}

void Coordinator::State::carry_out(const SweepGeneration& decided) {
  emit(Action(decided));
  gone_wanted = true;
  tell_members(decided);
  check_gone();
}

void Coordinator::State::carry_out(const RequestStop& decided) {
  emit(Action(decided));
  tell_members(decided);
}

/// Those on which something of the generation may live.
void Coordinator::State::tell_members(const CoordinatorMessage& message) {
  for (const auto& [agent, member] : members) {
    if (!member.gone) tell(agent, message);
  }
}

std::optional<AgentId> Coordinator::State::first_agent() const {
  return agent_of_node.empty() ? std::nullopt : std::optional(agent_of_node.front());
}

bool Coordinator::State::owns(AgentId agent, Generation of, Rank rank) const {
  auto index = static_cast<std::size_t>(rank.value);
  bool known = of == generation && members.contains(agent) && rank.value >= 0 && index < agent_of_rank.size();
  return known && agent_of_rank[index] == agent;
}

/// An agent's clock is known to within half a round trip; nothing has happened before the generation or in the future.
Instant Coordinator::State::plausible(Instant at) const { return std::clamp(at, std::min(started, now), now); }

template <class Message>
void Coordinator::State::pass_on(AgentId agent, Message message) {
  if (!owns(agent, message.generation, message.rank)) return;
  message.at = plausible(message.at);
  if constexpr (std::is_same_v<Message, RankExited>) {
    auto& first_error = message.evidence.first_error_at;
    if (first_error != Instant{}) first_error = std::min(plausible(first_error), message.at);
  }
  supervise(std::move(message));
}

template void Coordinator::State::pass_on(AgentId, RankSpawned);
template void Coordinator::State::pass_on(AgentId, RankSpawnFailed);
template void Coordinator::State::pass_on(AgentId, RankExited);

/// Only the first node's store is used, by the ranks of other nodes too.
void Coordinator::State::hear(AgentId agent, const StoreReached& message) {
  if (message.generation != generation || first_agent() != agent) return;
  supervise(StoreReached{message.generation, plausible(message.at)});
}

void Coordinator::State::hear(AgentId agent, const RankJoined& message) {
  if (message.generation != generation || first_agent() != agent) return;
  supervise(RankJoined{message.generation, message.rank, plausible(message.at)});
}

void Coordinator::State::hear(AgentId agent, const GenerationGone& message) {
  auto member = members.find(agent);
  if (message.generation != generation || member == members.end()) return;
  member->second.gone = true;
  check_gone();
}

/// The generation is gone when every agent has said so, or cannot have a living rank any more.
void Coordinator::State::check_gone() {
  bool all = true;
  check_gone_at.reset();
  for (auto& [agent, member] : members) {
    member.gone = member.gone || (member.gone_at && *member.gone_at <= now);
    all = all && member.gone;
    bool sooner = member.gone_at && (!check_gone_at || *member.gone_at < *check_gone_at);
    if (!member.gone && sooner) check_gone_at = member.gone_at;
  }
  if (all && !members.empty() && std::exchange(gone_wanted, false)) supervise(GenerationGone{generation, now});
}

}  // namespace taas::run
