#include "launch/connected_agents.hpp"

#include <fmt/format.h>

#include <utility>

namespace taas::launch {

run::AgentId ConnectedAgents::add(std::unique_ptr<Downlink> downlink) {
  run::AgentId agent{++last_};
  agents_.emplace(agent, std::move(downlink));
  return agent;
}

bool ConnectedAgents::drop(run::AgentId agent) { return agents_.erase(agent) > 0; }

Downlink* ConnectedAgents::find(run::AgentId agent) const {
  auto found = agents_.find(agent);
  return found == agents_.end() ? nullptr : found->second.get();
}

void ConnectedAgents::note_host(run::AgentId agent, const run::Hello& hello) {
  if (hello.role == run::AgentRole::kRanks) hosts_[agent] = hello.hostname;
}

std::string ConnectedAgents::with_host(run::AgentId agent, const std::string& text) const {
  auto host = hosts_.find(agent);
  return host == hosts_.end() || host->second.empty() ? text : fmt::format("{}: {}", host->second, text);
}

}  // namespace taas::launch
