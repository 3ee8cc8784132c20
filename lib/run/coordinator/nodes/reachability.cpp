#include "run/coordinator/nodes/reachability.hpp"

#include <algorithm>
#include <utility>

namespace taas::run {
namespace {

constexpr auto kPatience = std::chrono::seconds(10);

}  // namespace

void Reachability::aim(AgentId target, std::vector<std::string> addresses, std::uint16_t port) {
  if (target == target_ && port == port_) return;
  asked_.clear();
  reached_.clear();
  ++probe_;
  target_ = target;
  addresses_ = std::move(addresses);
  port_ = port;
}

std::vector<AgentId> Reachability::to_ask(const std::vector<AgentId>& agents, Instant now) {
  std::vector<AgentId> fresh;
  for (AgentId agent : agents) {
    bool known = asked_.contains(agent) || reached_.contains(agent);
    if (known) continue;
    asked_[agent] = now + kPatience;
    fresh.push_back(agent);
  }
  return fresh;
}

void Reachability::answer(AgentId agent, int probe, std::vector<std::string> reached) {
  if (probe == probe_ && asked_.erase(agent) > 0) reached_[agent] = std::move(reached);
}

void Reachability::expire(Instant now) {
  for (auto entry = asked_.begin(); entry != asked_.end();) {
    if (entry->second > now) {
      ++entry;
      continue;
    }
    reached_[entry->first] = {};
    entry = asked_.erase(entry);
  }
}

bool Reachability::complete(const std::vector<AgentId>& agents) const {
  return std::all_of(agents.begin(), agents.end(), [&](AgentId agent) { return reached_.contains(agent); });
}

std::optional<Instant> Reachability::next_expiry() const {
  std::optional<Instant> next;
  for (const auto& [agent, until] : asked_) {
    if (!next || until < *next) next = until;
  }
  return next;
}

bool Reachability::reaches(AgentId agent, const std::string& address) const {
  auto known = reached_.find(agent);
  if (known == reached_.end()) return false;
  return std::find(known->second.begin(), known->second.end(), address) != known->second.end();
}

std::optional<std::string> Reachability::common(const std::vector<AgentId>& agents) const {
  for (const auto& address : addresses_) {
    bool all = std::all_of(agents.begin(), agents.end(), [&](AgentId agent) { return reaches(agent, address); });
    if (all) return address;
  }
  return std::nullopt;
}

AgentId Reachability::odd_one_out(const std::vector<AgentId>& agents) const {
  auto fewest = std::min_element(agents.begin(), agents.end(),
                                 [&](AgentId a, AgentId b) { return reached_.at(a).size() < reached_.at(b).size(); });
  return *fewest;
}

}  // namespace taas::run
