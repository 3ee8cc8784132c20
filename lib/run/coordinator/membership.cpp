#include "run/coordinator/membership.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

namespace taas::run {
namespace {

using namespace std::chrono_literals;

constexpr Duration kFirstReplacementPause = 1s;
constexpr Duration kLongestReplacementPause = 60s;
constexpr Duration kProbation = 10s;

Duration pause_after(int losses) {
  return std::min(kFirstReplacementPause * (1 << std::min(losses - 1, 6)), kLongestReplacementPause);
}

}  // namespace

Membership::Membership(MembershipPolicy policy) : policy_(std::move(policy)) {}

/// A host is known by its place in the list, in whose order it is told of; one without a place by its name.
std::string Membership::key(int order, const std::string& hostname) {
  return order >= 0 ? fmt::format("#{:06}", order) : hostname;
}

Membership::Host& Membership::host_of(const Hello& hello) {
  auto& host = hosts_[key(hello.order, hello.hostname)];
  host.order = hello.order;
  return host;
}

std::optional<AgentId> Membership::holder(int order) const {
  auto found = by_order_.find(order);
  return found == by_order_.end() ? std::nullopt : std::optional(found->second);
}

void Membership::arrive(AgentId agent, const Hello& hello, Instant at) {
  auto& present = present_[agent] = {hello, at};
  present.hello.plays = std::clamp(hello.plays, 1, full_house());
  if (hello.order >= 0) by_order_[hello.order] = agent;
  auto host = hosts_.find(key(hello.order, hello.hostname));
  if (host == hosts_.end()) return;
  host->second.lost = false;
  host->second.start_at.reset();
  host->second.failure.clear();
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

/// Whoever has been there for much longer than it had to pause is no bad host.
void Membership::forgive(Host& host, AgentId agent, Instant now) const {
  if (now - present_.at(agent).since > kProbation + pause_after(std::max(host.losses, 1))) host.losses = 0;
}

/// A host that is not to blame may come back at once.
void Membership::lose(AgentId agent, Instant at, Blame blame) {
  auto present = present_.find(agent);
  if (present == present_.end()) return;
  forgive(host_of(present->second.hello), agent, at);
  auto hello = remove(agent);
  Host& host = host_of(*hello);
  host.lost = true;
  if (blame == Blame::kHost) host.barred_until = at + pause_after(++host.losses);
  if (host.order >= 0) host.start_at = at + pause_after(std::max(host.losses, 1));
}

void Membership::leave(AgentId agent) {
  if (auto hello = remove(agent)) host_of(*hello).lost = true;
}

bool Membership::enough_without(AgentId agent, Instant now) const {
  auto others = *this;
  others.leave(agent);
  return others.enough(now);
}

void Membership::refuse(AgentId agent, std::string why, Instant at) {
  if (!first_failure_) first_failure_ = at;
  if (auto hello = remove(agent)) host_of(*hello).failure = std::move(why);
}

/// A host that had been there before may come back another time.
void Membership::fail(int order, std::string why, Instant at) {
  if (holder(order)) return;
  if (!first_failure_) first_failure_ = at;
  command_failed_ = command_failed_ || order < 0;
  Host& host = hosts_[key(order, "")];
  host.order = order;
  if (!host.lost) {
    host.failure = std::move(why);
    return;
  }
  host.start_at = at + pause_after(++host.losses);
}

void Membership::begin(Generation generation, Instant at) {
  generation_ = generation;
  begun_ = at;
}

bool Membership::barred(const Hello& hello, Instant now) const {
  auto host = hosts_.find(key(hello.order, hello.hostname));
  return host != hosts_.end() && host->second.barred_until > now;
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
    if (present.ready && !seated.contains(agent) && (with_barred || !barred(present.hello, now))) free.push_back(agent);
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

Gathering Membership::gather(Instant now) const {
  std::vector<AgentId> chosen;
  if (there() >= policy_.min_nodes) chosen = fill(now, !enough(now));
  if (static_cast<int>(chosen.size()) < policy_.min_nodes) {
    return std::visit([](auto found) { return Gathering(std::move(found)); }, failure(now));
  }
  bool full = static_cast<int>(chosen.size()) == full_house();
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
    auto host = hosts_.find(key(order, ""));
    bool failed = host != hosts_.end() && !host->second.failure.empty();
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
  auto accounted =
      std::count_if(present_.begin(), present_.end(), [](const auto& entry) { return entry.second.ready; });
  accounted += std::count_if(hosts_.begin(), hosts_.end(),
                             [](const auto& entry) { return entry.second.lost || !entry.second.failure.empty(); });
  return std::max(0, policy_.expected_agents - static_cast<int>(accounted));
}

int Membership::may_come() const {
  int preparing = 0;
  for (const auto& [agent, present] : present_) preparing += present.ready ? 0 : present.hello.plays;
  auto lost = std::count_if(hosts_.begin(), hosts_.end(), [](const auto& entry) { return entry.second.lost; });
  bool some_play_several = policy_.expected_agents < policy_.min_nodes;
  int unknown = some_play_several && awaited() > 0 ? full_house() : awaited();
  return std::max(unknown, preparing) + static_cast<int>(lost);
}

/// A run that cannot begin ends at once, or when all of its hosts have answered.
std::variant<WaitForNodes, GatherFailed> Membership::failure(Instant now) const {
  if (hopeless()) {
    bool begins = generation_.value == 0;
    auto until = first_failure_.value_or(now) + policy_.answer_patience;
    if (begins && awaited() > 0 && now < until) return WaitForNodes{until};
    return GatherFailed{failures(), "", begins ? 2 : 1, now};
  }
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
    if (!holder(order) && !hosts_.contains(key(order, ""))) names.push_back(name_of(order));
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
  std::vector<std::string> texts;
  for (const auto& [name, host] : hosts_) {
    if (!host.failure.empty()) texts.push_back(host.failure);
  }
  auto silent = policy_.answer_patience > Duration::zero() ? silent_names() : std::vector<std::string>();
  for (const auto& name : silent) texts.push_back(fmt::format("{}: no answer yet", name));
  if (texts.size() == 1) return texts.front();
  if (texts.empty()) return fmt::format("there are too few nodes: {}", who_is_missing());
  return fmt::format("{} hosts cannot take part: {}", texts.size(), fmt::join(texts, "; "));
}

std::vector<int> Membership::hosts_to_start(Instant now) {
  std::vector<int> orders;
  for (auto& [name, host] : hosts_) {
    if (!host.start_at || *host.start_at > now) continue;
    orders.push_back(host.order);
    host.start_at = now + pause_after(std::max(host.losses + 1, 4));
  }
  return orders;
}

std::optional<Instant> Membership::next_start() const {
  std::optional<Instant> next;
  for (const auto& [name, host] : hosts_) {
    if (host.start_at && (!next || *host.start_at < *next)) next = host.start_at;
  }
  return next;
}

}  // namespace taas::run
