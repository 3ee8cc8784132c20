#include "run/coordinator/agents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace taas::run {

std::string name_of(const Hello& hello) { return hello.hostname.empty() ? "a node" : hello.hostname; }

void Agents::add(AgentId agent, const Hello& hello) {
  known_[agent] = {hello};
  silence_.on_sign_of_life(agent, decisions_.now());
}

void Agents::on(AgentId agent, const Heartbeat& message) {
  send(agent, HeartbeatEcho{message.number, message.sent, decisions_.now()});
}

void Agents::answer_aside(AgentId connection, const Heartbeat& message) {
  const auto agent = connected(message.instance);
  if (!agent) return;
  silence_.on_sign_of_life_aside(*agent, decisions_.now());
  decisions_.emit(Tell{connection, HeartbeatEcho{message.number, message.sent, decisions_.now()}});
}

void Agents::ready(AgentId agent, const Ready& message) {
  auto& known = known_.at(agent);
  known.store_port = message.store_port;
  known.rank_ports = message.rank_ports;
  known.folder = message.folder;
  known.view = message.view;
}

KnownAgent Agents::remove(AgentId agent) {
  silence_.forget(agent);
  return std::move(known_.extract(agent).mapped());
}

void Agents::dismiss(AgentId agent, const std::string& reason, int exit_code) {
  if (!contains(agent)) return;
  send(agent, Dismissed{reason, exit_code});
  unanswered_[agent] = key_of(agent);
  silence_.forget(agent);
  known_.erase(agent);
}

std::optional<AgentId> Agents::connected(const std::string& instance) const {
  auto found = std::find_if(known_.begin(), known_.end(),
                            [&](const auto& entry) { return entry.second.hello.instance == instance; });
  return instance.empty() || found == known_.end() ? std::nullopt : std::optional(found->first);
}

std::string Agents::key_of(AgentId agent) const {
  const auto& instance = known_.at(agent).hello.instance;
  return instance.empty() ? fmt::format("#{}", agent.value) : instance;
}

void Agents::send(AgentId agent, const CoordinatorMessage& message) {
  if (contains(agent)) decisions_.emit(Tell{agent, message});
}

void Agents::send_all(const CoordinatorMessage& message) {
  for (const auto& [agent, known] : known_) decisions_.emit(Tell{agent, message});
}

void Agents::dismiss_all(const Dismissed& words) {
  send_all(words);
  for (const auto& [agent, known] : known_) unanswered_[agent] = key_of(agent);
}

/// Who was turned away is nobody's loss.
void Agents::left(AgentId agent) {
  auto key = unanswered_.extract(agent);
  if (!key.empty() && contains(agent)) returning_.insert(key.mapped());
}

/// Its former link may not be known to be broken yet.
void Agents::dismiss_latecomer(AgentId agent, const Hello& hello, const Dismissed& words) {
  std::erase_if(unanswered_, [&](const auto& entry) { return entry.second == hello.instance; });
  returning_.erase(hello.instance);
  known_[agent] = {hello};
  decisions_.emit(Tell{agent, words});
  unanswered_[agent] = key_of(agent);
}

}  // namespace taas::run
