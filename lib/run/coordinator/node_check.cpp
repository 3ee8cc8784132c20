#include "run/coordinator/node_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>

namespace taas::run {
namespace {

constexpr auto kExaminePatience = std::chrono::seconds(20);  // the first look into an environment on shared storage
constexpr auto kMachinePatience = std::chrono::seconds(30);
constexpr auto kReachPatience = std::chrono::seconds(5);
/// Each node tries so many others, those that follow it: all pairs of a few racks.
constexpr std::size_t kMostPeers = 64;

}  // namespace

bool NodeCheck::is_done(const std::vector<AgentId>& parties) {
  if (wanted_ == Check::kNone || round_ == Round::kDone) return true;
  if (round_ == Round::kNone && !awaits_machines()) examine(parties);
  return false;
}

bool NodeCheck::awaits_machines() {
  if (wanted_ != Check::kOnly || machines_are_late_ || machines_.settled()) return false;
  if (!until_) until_ = decisions_.now() + kMachinePatience;
  return true;
}

void NodeCheck::examine(const std::vector<AgentId>& parties) {
  for (AgentId agent : parties) {
    const auto& hello = agents_.at(agent).hello;
    parties_[agent].node.name = name_of(hello);
    parties_[agent].order = hello.order;
  }
  for (const auto& [agent, known] : agents_.all()) {
    if (!machines_.has(agent)) continue;
    auto& party = parties_[agent];
    party.node.name = name_of(known.hello);
    party.node.makes_data = true;
    party.order = std::numeric_limits<int>::max();  // behind the nodes
  }
  if (const auto absent = machines_.absent(); !absent.empty() && wanted_ == Check::kOnly) {
    report_.findings.push_back({Severity::kError,
                                "data_nodes",
                                {},
                                "CPU machines have not come: " + absent,
                                "their loaders would run on fewer"});
  }
  begin_round(Round::kExamining, kExaminePatience);
  for (const auto& [agent, party] : parties_) agents_.send(agent, ExamineNode{});
}

void NodeCheck::begin_round(Round round, Duration patience) {
  round_ = round;
  until_ = decisions_.now() + patience;
  for (auto& [agent, party] : parties_) party.answered = false;
}

void NodeCheck::on(AgentId agent, const NodeExamined& message) {
  auto party = parties_.find(agent);
  if (round_ != Round::kExamining || party == parties_.end()) return;
  party->second.answered = true;
  party->second.port = message.port;
  party->second.node.facts = message.facts;
  party->second.node.clock = std::chrono::nanoseconds(message.facts.wall_ns) - message.at.time_since_epoch();
  advance();
}

void NodeCheck::on(AgentId agent, const NodesReached& message) {
  auto party = parties_.find(agent);
  if (round_ != Round::kReaching || party == parties_.end()) return;
  party->second.answered = true;
  party->second.node.unreached = message.unreached;
  advance();
}

void NodeCheck::forget(AgentId agent) {
  const auto party = parties_.extract(agent);
  if (party.empty()) return;
  if (wanted_ == Check::kOnly) {
    const auto& name = party.mapped().node.name;
    report_.findings.push_back({Severity::kError, "lost", {name}, "was lost while it was looked at", ""});
    return advance();
  }
  parties_.clear();  // whoever comes in its place is looked at with the others
  until_.reset();
  round_ = Round::kNone;
}

void NodeCheck::expire() {
  if (!until_ || *until_ > decisions_.now()) return;
  if (round_ == Round::kNone) {
    machines_are_late_ = true;
    return until_.reset();
  }
  for (auto party = parties_.begin(); party != parties_.end();) {
    const bool silent = !party->second.answered;
    if (silent) {
      report_.findings.push_back({Severity::kError,
                                  "silent",
                                  {party->second.node.name},
                                  round_ == Round::kExamining ? "did not say within 20 s what it has"
                                                              : "did not say within 5 s which nodes it reaches",
                                  "a disk or a driver may hang there"});
    }
    party = silent && round_ == Round::kExamining ? parties_.erase(party) : std::next(party);
  }
  for (auto& [agent, party] : parties_) party.answered = true;
  advance();
}

std::optional<Instant> NodeCheck::next_check() const { return until_; }

void NodeCheck::advance() {
  const bool waits = std::ranges::any_of(parties_, [](const auto& party) { return !party.second.answered; });
  if (waits) return;
  if (round_ == Round::kExamining && parties_.size() > 1) return ask_for_ways();
  if (round_ == Round::kExamining || round_ == Round::kReaching) conclude();
}

void NodeCheck::ask_for_ways() {
  begin_round(Round::kReaching, kReachPatience);
  std::vector<NodeDoor> doors;
  std::vector<AgentId> agents;
  for (const auto& [agent, party] : parties_) {
    doors.push_back({party.node.name, agents_.at(agent).hello.addresses, party.port});
    agents.push_back(agent);
  }
  for (std::size_t i = 0; i < agents.size(); ++i) {
    ReachNodes others;
    for (std::size_t k = 1; k < doors.size() && k <= kMostPeers; ++k)
      others.doors.push_back(doors[(i + k) % doors.size()]);
    agents_.send(agents[i], others);
  }
}

void NodeCheck::conclude() {
  std::vector<Party> in_order;
  for (auto& [agent, party] : parties_) in_order.push_back(std::move(party));
  std::ranges::stable_sort(in_order, {}, &Party::order);
  for (auto& party : in_order) report_.nodes.push_back(std::move(party.node));
  parties_.clear();
  until_.reset();
  round_ = Round::kDone;
  auto found = find_faults(report_.nodes);
  report_.findings.insert(report_.findings.end(), std::make_move_iterator(found.begin()),
                          std::make_move_iterator(found.end()));
  std::ranges::stable_sort(report_.findings, {}, &Finding::severity);
  report_.ok = obstacle().empty();
  decisions_.emit(NodesChecked{report_});
}

void NodeCheck::fail(const std::string& why, const std::string& hint) {
  report_.findings.push_back({Severity::kError, "nodes", {}, why, hint});
  std::vector<AgentId> there;
  for (const auto& [agent, known] : agents_.all()) {
    if (known.hello.role == AgentRole::kRanks) there.push_back(agent);
  }
  round_ == Round::kNone && !there.empty() ? examine(there) : conclude();
}

std::string NodeCheck::obstacle() const {
  const auto error = std::ranges::find(report_.findings, Severity::kError, &Finding::severity);
  return error == report_.findings.end() ? "" : line_of(*error, report_.nodes.size());
}

}  // namespace taas::run
