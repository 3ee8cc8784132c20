#include "run/coordinator/nodes/data_nodes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace taas::run {
namespace {

constexpr Duration kFirstWorkerPause = std::chrono::seconds(1);
constexpr Duration kLongestWorkerPause = std::chrono::seconds(30);

}  // namespace

bool DataNodes::owns_order(int order) const {
  if (order == kEveryDataNode) return policy_.nodes > 0;
  return order >= policy_.first_order && order < policy_.first_order + policy_.nodes;
}

std::optional<AgentId> DataNodes::holder(int order) const {
  auto found = std::find_if(of_agent_.begin(), of_agent_.end(),
                            [order](const auto& entry) { return entry.second.hello.order == order; });
  return order < 0 || found == of_agent_.end() ? std::nullopt : std::optional(found->first);
}

int DataNodes::key_of(const Hello& hello) {
  if (hello.order >= 0) return hello.order;
  return keys_.try_emplace(hello.hostname, -1 - static_cast<int>(keys_.size())).first->second;
}

std::string DataNodes::name_of(const Hello& hello) const {
  auto index = static_cast<std::size_t>(hello.order - policy_.first_order);
  return owns_order(hello.order) && index < policy_.names.size() ? policy_.names[index] : hello.hostname;
}

void DataNodes::arrive(AgentId agent, const Hello& hello) {
  of_agent_[agent] = {hello, false, false};
  auto key = key_of(hello);
  seen_.insert(key);
  if (auto loss = losses_.find(key); loss != losses_.end()) loss->second.start_at.reset();
}

void DataNodes::ready(AgentId agent, const std::vector<std::uint16_t>& ports) {
  auto& node = of_agent_.at(agent);
  node.ready = true;
  auto& places = places_[key_of(node.hello)];
  while (places.size() < ports.size()) {
    places.push_back(list_.workers.size());
    list_.workers.push_back({fmt::format("data worker {} ({})", places.back(), name_of(node.hello)), "", {}, 0});
  }
  for (std::size_t i = 0; i < ports.size(); ++i) {
    auto& worker = list_.workers[places[i]];
    worker.node = node.hello.instance;
    worker.addresses = node.hello.addresses;
    worker.port = ports[i];
  }
}

/// The places stay, without a way to them.
void DataNodes::remove(AgentId agent) {
  auto node = std::move(of_agent_.extract(agent).mapped());
  for (auto place : places_[key_of(node.hello)]) {
    auto& worker = list_.workers[place];
    if (worker.node != node.hello.instance) continue;
    worker.addresses.clear();
    worker.port = 0;
  }
}

void DataNodes::lose(AgentId agent, Instant at) {
  auto key = key_of(of_agent_.at(agent).hello);
  remove(agent);
  auto& loss = losses_[key];
  loss.pause = loss.pause == Duration{} ? kFirstWorkerPause : std::min(2 * loss.pause, kLongestWorkerPause);
  if (key >= 0) loss.start_at = at + loss.pause;
}

void DataNodes::refuse(AgentId agent) {
  failed_.insert(key_of(of_agent_.at(agent).hello));
  remove(agent);
}

/// One that was there before is tried again.
void DataNodes::fail(int order) {
  command_ended_ = command_ended_ || order == kEveryDataNode;
  int first = order == kEveryDataNode ? policy_.first_order : order;
  int last = order == kEveryDataNode ? policy_.first_order + policy_.nodes - 1 : order;
  for (int one = first; one <= last; ++one) {
    if (owns_order(one) && !seen_.contains(one)) failed_.insert(one);
  }
}

void DataNodes::prepared(AgentId agent) { of_agent_.at(agent).prepared = true; }

bool DataNodes::settled() const {
  std::size_t there = failed_.size();
  for (const auto& [key, places] : places_) there += failed_.contains(key) ? 0 : 1;
  return there >= static_cast<std::size_t>(policy_.nodes);
}

bool DataNodes::all_prepared() const {
  bool any = false;
  for (const auto& [agent, node] : of_agent_) {
    if (!node.prepared) return false;
    any = true;
  }
  return any && settled();
}

std::string DataNodes::missing() const {
  std::vector<std::string> names;
  for (int i = 0; i < policy_.nodes; ++i) {
    if (places_.contains(policy_.first_order + i) || failed_.contains(policy_.first_order + i)) continue;
    auto index = static_cast<std::size_t>(i);
    names.push_back(index < policy_.names.size() ? policy_.names[index] : fmt::format("CPU machine {}", i));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::vector<int> DataNodes::hosts_to_start(Instant now) {
  std::vector<int> orders;
  for (auto& [order, loss] : losses_) {
    if (!loss.start_at || *loss.start_at > now) continue;
    orders.push_back(order);
    loss.pause = std::min(2 * loss.pause, kLongestWorkerPause);
    loss.start_at = now + loss.pause;  // should it not come
  }
  return orders;
}

std::optional<Instant> DataNodes::next_start() const {
  std::optional<Instant> next;
  for (const auto& [order, loss] : losses_) {
    if (loss.start_at && (!next || *loss.start_at < *next)) next = loss.start_at;
  }
  return next;
}

}  // namespace taas::run
