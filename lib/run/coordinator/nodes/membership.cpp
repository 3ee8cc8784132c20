#include "run/coordinator/nodes/membership.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

namespace taas::run {
Membership::Membership(MembershipPolicy policy) : policy_(std::move(policy)) {}

std::optional<AgentId> Membership::holder(int order) const {
  auto found = by_order_.find(order);
  return found == by_order_.end() ? std::nullopt : std::optional(found->second);
}

void Membership::arrive(AgentId agent, const Hello& hello, Instant at) {
  if (!std::exchange(anybody_came_, true) && policy_.nodes_are_held) begun_ = at;
  auto& present = present_[agent] = {hello, at};
  present.hello.plays = std::clamp(hello.plays, 1, most_nodes());
  if (hello.order >= 0) by_order_[hello.order] = agent;
  hosts_.arrive(hello);
}

void Membership::ready(AgentId agent) {
  if (auto found = present_.find(agent); found != present_.end()) found->second.ready = true;
}

std::optional<Hello> Membership::remove(AgentId agent) {
  auto node = present_.extract(agent);
  if (node.empty()) return std::nullopt;
  by_order_.erase(node.mapped().hello.order);
  return std::move(node.mapped().hello);
}

void Membership::lose(AgentId agent, Instant at, Blame blame) {
  auto present = present_.find(agent);
  if (present == present_.end()) return;
  auto since = present->second.since;
  hosts_.lose(*remove(agent), since, at, blame);
}

void Membership::leave(AgentId agent) {
  if (auto hello = remove(agent)) hosts_.leave(*hello);
}

bool Membership::enough_without(AgentId agent, Instant now) const {
  auto others = *this;
  others.leave(agent);
  return others.enough(now);
}

void Membership::refuse(AgentId agent, std::string why, Instant at) {
  if (!first_failure_) first_failure_ = at;
  if (auto hello = remove(agent)) hosts_.refuse(*hello, std::move(why));
}

void Membership::fail(int order, std::string why, Instant at) {
  if (holder(order)) return;
  if (!first_failure_) first_failure_ = at;
  command_failed_ = command_failed_ || order < 0;
  hosts_.fail(order, std::move(why), at);
}

void Membership::begin(Generation generation, Instant at) {
  generation_ = generation;
  begun_ = at;
}

/// The nodes that still have their agent; {-1} in a hole.
std::vector<AgentId> Membership::seated() const {
  auto seats = seats_;
  for (auto& seat : seats) {
    if (!present_.contains(seat)) seat = AgentId{-1};
  }
  seats.resize(policy_.ranks_on_node.size(), AgentId{-1});
  return seats;
}

std::vector<AgentId> Membership::left_over(Instant now, bool with_barred) const {
  std::vector<AgentId> free;
  std::set<AgentId> seated(seats_.begin(), seats_.end());
  for (const auto& [agent, present] : present_) {
    if (present.ready && !seated.contains(agent) && (with_barred || !hosts_.is_barred(present.hello, now)))
      free.push_back(agent);
  }
  auto place = [&](AgentId agent) {
    int order = present_.at(agent).hello.order;
    return std::pair(order < 0, order);
  };
  std::stable_sort(free.begin(), free.end(), [&](AgentId a, AgentId b) { return place(a) < place(b); });
  return free;
}

/// Nodes keep their agents, holes are filled in order, and what is left open at the end is left out.
std::vector<AgentId> Membership::fill(Instant now, bool with_barred) const {
  auto seats = seated();
  auto next_hole = [&](auto from) { return std::find(from, seats.end(), AgentId{-1}); };
  auto hole = next_hole(seats.begin());
  for (AgentId agent : left_over(now, with_barred)) {
    for (int i = plays(agent); i > 0 && hole != seats.end(); --i, hole = next_hole(hole)) *hole = agent;
  }
  std::erase(seats, AgentId{-1});
  return seats;
}

bool Membership::enough(Instant now) const { return static_cast<int>(fill(now, false).size()) >= policy_.min_nodes; }

bool Membership::will_be_enough(Instant now) const {
  return static_cast<int>(fill(now, false).size()) + awaited() >= policy_.min_nodes;
}

NodeChoice Membership::choose(Instant now) const {
  std::vector<AgentId> chosen;
  if (there() >= policy_.min_nodes) chosen = fill(now, !enough(now));
  if (static_cast<int>(chosen.size()) < policy_.min_nodes) {
    return std::visit([](auto found) { return NodeChoice(std::move(found)); }, failure(now));
  }
  bool full = static_cast<int>(chosen.size()) == most_nodes();
  bool better_may_come = full ? earlier_one_is_missing(chosen) : awaited() > 0;
  auto until = begun_ + policy_.elastic_wait;
  if (generation_.value == 0 && better_may_come && now < until) return WaitForNodes{until};
  return Chosen{std::move(chosen)};
}

/// With places in a list, rank 0 belongs to the first host: those before the last one chosen are waited for.
bool Membership::earlier_one_is_missing(const std::vector<AgentId>& chosen) const {
  int last = -1;
  for (AgentId agent : chosen) last = std::max(last, present_.at(agent).hello.order);
  for (int order = 0; order < std::min(last, policy_.expected_agents); ++order) {
    bool failed = hosts_.has_failed(order);
    auto agent = holder(order);
    if (!failed && (!agent || !present_.at(*agent).ready)) return true;
  }
  return false;
}

int Membership::there() const {
  return std::accumulate(present_.begin(), present_.end(), 0, [](int sum, const auto& entry) {
    return sum + (entry.second.ready ? entry.second.hello.plays : 0);
  });
}

/// Agents that were asked for and are not ready yet, or have never come.
int Membership::awaited() const {
  if (command_failed_) {
    return static_cast<int>(
        std::count_if(present_.begin(), present_.end(), [](const auto& entry) { return !entry.second.ready; }));
  }
  auto ready = std::count_if(present_.begin(), present_.end(), [](const auto& entry) { return entry.second.ready; });
  return std::max(0, policy_.expected_agents - static_cast<int>(ready) - hosts_.count_missing());
}

int Membership::may_come() const {
  int preparing = 0;
  for (const auto& [agent, present] : present_) preparing += present.ready ? 0 : present.hello.plays;
  bool some_play_several = policy_.expected_agents < policy_.min_nodes;
  int unknown = some_play_several && awaited() > 0 ? most_nodes() : awaited();
  return std::max(unknown, preparing) + hosts_.count_lost();
}

/// A run that cannot begin ends at once, or when all of its hosts have answered.
std::variant<WaitForNodes, GatherFailed> Membership::failure(Instant now) const {
  if (hopeless()) {
    bool begins = generation_.value == 0;
    auto until = first_failure_.value_or(now) + policy_.answer_patience;
    if (begins && awaited() > 0 && now < until) return WaitForNodes{until};
    return GatherFailed{failures(), "", begins ? 2 : 1, now};
  }
  if (policy_.nodes_are_held && !anybody_came_) return WaitForNodes{now + policy_.gather_timeout};
  if (now < begun_ + policy_.gather_timeout) return WaitForNodes{begun_ + policy_.gather_timeout};
  auto text = fmt::format("waited {:g} s for nodes: {}", seconds(policy_.gather_timeout), who_is_missing());
  return GatherFailed{text, "", 1, now};
}

std::string Membership::name_of(int order) const {
  auto index = static_cast<std::size_t>(order);
  if (index < policy_.host_names.size()) return policy_.host_names[index];
  return fmt::format("node {}", order);
}

std::vector<std::string> Membership::missing_names() const {
  std::vector<std::string> names;
  bool listed = !policy_.host_names.empty() || std::any_of(present_.begin(), present_.end(), [](const auto& entry) {
    return entry.second.hello.order >= 0;
  });
  for (int order = 0; listed && order < policy_.expected_agents; ++order) {
    auto agent = holder(order);
    if (!agent || !present_.at(*agent).ready) names.push_back(name_of(order));
  }
  return names;
}

/// Those that have neither come nor failed.
std::vector<std::string> Membership::silent_names() const {
  std::vector<std::string> names;
  for (int order = 0; order < policy_.expected_agents; ++order) {
    if (!holder(order) && !hosts_.knows(order)) names.push_back(name_of(order));
  }
  return names;
}

std::string Membership::who_is_missing() const {
  auto text = fmt::format("{} of {} are there", there(), std::max(policy_.min_nodes, 1));
  auto names = missing_names();
  constexpr std::size_t kMostNames = 8;
  if (names.empty()) return text;
  bool cut = names.size() > kMostNames;
  auto more = cut ? fmt::format(" and {} more", names.size() - kMostNames) : std::string();
  if (cut) names.resize(kMostNames);
  return fmt::format("{}; missing: {}{}", text, fmt::join(names, ", "), more);
}

std::string Membership::failures() const {
  auto texts = hosts_.failures();
  auto silent = policy_.answer_patience > Duration::zero() ? silent_names() : std::vector<std::string>();
  for (const auto& name : silent) texts.push_back(fmt::format("{}: no answer yet", name));
  if (texts.size() == 1) return texts.front();
  if (texts.empty()) return fmt::format("there are too few nodes: {}", who_is_missing());
  return fmt::format("{} hosts cannot take part: {}", texts.size(), fmt::join(texts, "; "));
}

}  // namespace taas::run
