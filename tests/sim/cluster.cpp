#include "cluster.hpp"

#include <fmt/format.h>

#include <csignal>
#include <utility>

#include "run/messages/journal.hpp"

namespace taas::sim {
namespace {

using namespace std::chrono_literals;

constexpr Instant kStart{1000s};
constexpr Duration kPatience = 300s;    // then the user stops a run that does not end
constexpr Duration kLongestRun = 500s;  // patience, gathering, shutdown, output
constexpr Duration kAfterlife = 200s;   // agents that have lost the coordinator look for it

}  // namespace

Cluster::Cluster(std::uint64_t seed, Settings settings)
    : agenda_(kStart), random_(seed), settings_(std::move(settings)), coordinator_(settings_.policy) {
  outcome_.node_timeout = settings_.policy.lost_after;
  outcome_.messages.resize(static_cast<std::size_t>(settings_.machines()));
  for (int number = 0; number < settings_.machines(); ++number) {
    run::Hello hello;
    hello.version = random_.chance(settings_.versions_apart) ? "0.9" : settings_.policy.version;
    hello.hostname = fmt::format("host{}", number);
    hello.order = settings_.ordered ? number : -1;
    hello.addresses = {fmt::format("10.0.0.{}", number)};
    if (is_data(number)) hello.role = run::AgentRole::kData;
    nodes_.push_back(std::make_unique<Node>(agenda_, random_, *this, number, settings_.agent, hello));
    node(number).calm = settings_.calm;
    node(number).disk = settings_.disk;
    node(number).refuses = random_.chance(settings_.refusals);
    bool apart = random_.chance(settings_.folders_apart);
    node(number).folder = !apart ? settings_.policy.folder : random_.chance(50) ? "theirs" : hello.hostname;
    const bool alone = settings_.kernels_apart > 0 && random_.chance(settings_.kernels_apart);
    node(number).view = alone ? "of " + hello.hostname : "a kernel of many";
    bool unfit = node(number).refuses || hello.version != settings_.policy.version;
    missing_allowed_ = missing_allowed_ || (unfit && matters(number));
  }
}

Outcome Cluster::run() {
  set_the_scene();
  agenda_.after(0s, [this] { feed(run::Event(run::RunStarted{agenda_.now()})); });
  agenda_.after(kPatience, [this] { feed(run::Event(run::SignalReceived{SIGINT, agenda_.now()})); });
  while (agenda_.now() < kStart + kLongestRun + kAfterlife && agenda_.step()) {
  }
  check_end();
  return outcome_;
}

/// A loop that stands still hears nothing, and afterwards everything at once.
void Cluster::feed(const run::CoordinatorEvent& event) {
  agenda_.now() < stalled_until_ ? backlog_.push_back(event) : handle(event);
}

void Cluster::handle(const run::CoordinatorEvent& event) {
  if (parted_) return;
  if (const auto* happened = std::get_if<run::Event>(&event)) {
    const auto* signal = std::get_if<run::SignalReceived>(happened);
    stopped_ = stopped_ || (signal != nullptr && signal->signal != SIGUSR1);
    const bool hurries = outcome_.finished && signal != nullptr;  // then nobody is waited for
    if (hurries) std::erase_if(told_at_the_end_, [this](int number) { return !left_with_.contains(number); });
  }
  if (const auto* arrived = std::get_if<run::AgentArrived>(&event)) known_.insert(arrived->agent);
  auto decided = coordinator_.handle(event);
  for (const auto& action : decided) carry_out(action);
  check_start(decided);
}

void Cluster::carry_out(const run::CoordinatorAction& action) {
  std::visit([this](const auto& decided) { act(decided); }, action);
}

void Cluster::say(const std::string& line) {
  if (on_line) on_line(fmt::format("{:10.6f} {}", seconds(agenda_.now() - kStart), line));
}

void Cluster::act(const run::Happened& action) {
  if (std::holds_alternative<run::NodeLost>(action.event)) ++outcome_.nodes_lost;
  if (on_line) say(run::journal_line(action.event, kStart));
}

void Cluster::act(const run::Action& action) {
  if (on_line) say(run::journal_line(action, kStart));
  std::visit([this](const auto& decided) { obey(decided); }, action);
}

void Cluster::obey(const run::SetDeadline& action) {
  Duration late = random_.up_to(5ms);
  agenda_.at(action.at + late, [this, mine = ++deadline_] {
    if (mine == deadline_) feed(run::Event(run::DeadlineReached{agenda_.now()}));
  });
}

void Cluster::obey(const run::ReportFailure& action) { check_failure(action.verdict); }

void Cluster::obey(const run::Finish& action) {
  outcome_.finished = true;
  outcome_.verdict = action.verdict;
  outcome_.length = agenda_.now() - kStart;
  ++deadline_;
  disturb_the_end();
}

void Cluster::act(const run::AwaitAnswers& action) {
  agenda_.at(action.until, [this] { feed(run::Event(run::DeadlineReached{agenda_.now()})); });
}

/// The coordinator's process ends: its links close.
void Cluster::act(const run::Parted&) {
  require(outcome_.finished, "the coordinator parts before the end");
  say("the coordinator's process ends");
  parted_ = true;
  for (auto& [id, connection] : connections_) close_by_coordinator(id);
}

void Cluster::act(const run::Tell& action) {
  auto& connection = connections_.at(action.agent);
  if (!connection.coordinator_open) return;
  bool echo = std::holds_alternative<run::HeartbeatEcho>(action.message);
  if (!echo) ++outcome_.messages[static_cast<std::size_t>(connection.node)];
  if (const auto* stop = std::get_if<run::RequestStop>(&action.message); stop != nullptr && stop->signal != 0) {
    require(stop_requests_.insert(action.agent.value).second, "an agent is told twice to write a checkpoint");
  }
  if (const auto* list = std::get_if<run::DataWorkers>(&action.message)) check_workers(*list);
  require(!placed_ || !std::holds_alternative<run::Settle>(action.message),
          "a node settles after files got their names");
  connection.down->send([this, id = action.agent, message = action.message] {
    auto& to = connections_.at(id);
    if (!to.agent_open) return lose_coordinator_end(id);
    to.agent_open = !to.aside;
    node(to.node).tell(run::CoordinatorSaid{message, {}, to.aside});
  });
}

void Cluster::act(const run::Drop& action) { close_by_coordinator(action.agent); }

/// Nobody writes to the folders any more.
void Cluster::act(const run::PlaceOutput& action) {
  require(!std::exchange(placed_, true), "files are given their names twice");
  require(!action.waiting.empty(), "no files are given names");
  agenda_.after(random_.up_to(200ms + settings_.disk), [this] { feed(run::OutputPlaced{"", 1, agenda_.now()}); });
}

void Cluster::act(const run::StartAgent& action) {
  require(settings_.ordered, "an agent is to be started on a host that is not in the list");
  if (!settings_.host_starter) return;
  agenda_.after(200ms + random_.up_to(2s), [this, order = action.order] {
    if (outcome_.finished) return;
    Node& host = node(order);
    if (!host.powered()) return feed(run::HostFailed{order, fmt::format("host{}: no route", order), agenda_.now()});
    host.here([&host] { host.start_agent(); });
  });
}

void Cluster::receive(run::AgentId id, const run::AgentMessage& message) {
  if (const auto* hello = std::get_if<run::Hello>(&message)) {
    return feed(run::AgentArrived{id, *hello, agenda_.now()});
  }
  if (const auto* settled = std::get_if<run::OutputSettled>(&message); settled != nullptr && settled->error.empty()) {
    settled_.insert(folder_of(id));
  }
  feed(run::AgentSaid{id, message, agenda_.now()});
}

void Cluster::left(int number, const run::Leave& leave) {
  say(fmt::format("the agent of host{} leaves: {} {}", number, leave.exit_code, leave.reason));
  left_with_[number] = leave.exit_code;
  if (auto id = connection_of(number); id.value >= 0) close_by_agent(id, "its agent has ended");
}

void Cluster::spawned(int number, SimulatedRank& rank, const run::StartRanks& start) {
  ++living_[rank.generation];
  check_spawn(number, rank, start);
  live(number, rank);
}

void Cluster::died(int /*number*/, const SimulatedRank& rank, run::ExitStatus status) {
  if (--living_[rank.generation] == 0) living_.erase(rank.generation);
  if (rank.generation != generation_ || status.success()) return;
  broken_ = true;
  lose_peers(rank);
}

}  // namespace taas::sim
