#include "node.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

namespace taas::sim {
namespace {

using namespace std::chrono_literals;

constexpr Duration kKeeper = 50ms;         // until the keeper has seen its agent die
constexpr Duration kLongestDeath = 100ms;  // of a process that was sent SIGKILL
constexpr Duration kThawGrace = 500ms;     // a heartbeat, a reset's way back, a death

}  // namespace

Node::Node(Agenda& agenda, Random& random, NodeWorld& world, int number, run::AgentPolicy policy, run::Hello hello)
    : agenda_(agenda),
      random_(random),
      world_(world),
      number_(number),
      policy_(policy),
      hello_(std::move(hello)),
      clock_ahead_(random.up_to(1000h)),
      drift_millionths_(random.between(-50, 50)) {
  // Clocks are compared over paths that take about as long there as back.
  Duration delay = 100us + random.up_to(random.chance(80) ? 2ms : 40ms);
  up.delay = delay + random.up_to(delay / 20);
  down.delay = delay + random.up_to(delay / 20);
}

Instant Node::clock() const {
  auto since = agenda_.now().time_since_epoch();
  return agenda_.now() + clock_ahead_ + since / 1'000'000 * drift_millionths_;
}

void Node::start_agent() {
  if (agent_ || !powered_) return;
  ++incarnation_;
  agent_backlog_.clear();
  agent_stopped_ = false;
  hello_.instance = fmt::format("{}.{}", number_, incarnation_);
  agent_ = std::make_unique<run::Agent>(policy_, hello_);
  world_.connect(number_);
}

void Node::here(std::function<void()> what) {
  if (!powered_) return;
  frozen_ ? backlog_.push_back(std::move(what)) : what();
}

void Node::later(Duration delay, std::function<void()> what) {
  agenda_.after(delay, [this, what = std::move(what)] { here(what); });
}

void Node::tell(run::AgentEvent event) {
  by_agent([this, event = std::move(event)]() mutable {
    std::visit([this](auto& happened) { happened.at = clock(); }, event);
    for (const auto& action : agent_->handle(event)) {
      if (agent_) carry_out(action);
    }
  });
}

void Node::by_agent(std::function<void()> what) {
  here([this, what = std::move(what), mine = incarnation_] {
    if (!agent_ || mine != incarnation_) return;
    agent_stopped_ ? agent_backlog_.push_back(what) : what();
  });
}

void Node::continue_agent() {
  agent_stopped_ = false;
  for (auto& what : std::exchange(agent_backlog_, {})) by_agent(std::move(what));
}

void Node::carry_out(const run::AgentAction& action) {
  std::visit([this](const auto& decided) { act(decided); }, action);
}

void Node::act(const run::SetDeadline& action) {
  auto delay = std::max(action.at - clock(), Duration{}) + random_.up_to(2ms);
  later(delay, [this, mine = ++deadline_, of = incarnation_] {
    if (mine == deadline_ && of == incarnation_) tell(run::DeadlineReached{});
  });
}

void Node::act(const run::Leave& action) {
  world_.require(living() == 0, fmt::format("node {}: the agent leaves while ranks live", number_));
  agent_.reset();
  ++deadline_;
  world_.left(number_, action);
}

void Node::act(const run::Perform& action) {
  std::visit([this](const auto& order) { perform(order); }, action.message);
}

void Node::say(Duration delay, run::AgentMessage message) {
  later(delay, [this, message = std::move(message), of = incarnation_]() mutable {
    if (of != incarnation_) return;
    run::NodeSaid said{std::move(message), {}};
    tell(std::move(said));
  });
}

void Node::perform(const run::Welcome&) {
  run::Ready ready{4711};
  ready.folder = folder;
  ready.view = view;
  if (hello_.role == run::AgentRole::kData) ready.data_ports = {1, 2};
  run::AgentMessage answer = ready;
  if (refuses) answer = run::Refused{"train: not found"};
  say(random_.up_to(100ms + disk), std::move(answer));
}

void Node::perform(const run::ProbeAddresses& order) {
  later(random_.up_to(20ms), [this, mine = ++probe_, addresses = order.addresses] {
    if (mine == probe_) say({}, run::AddressesReached{addresses});  // a later one has replaced it
  });
}

/// Its workers prepare the loader, or have prepared it before.
void Node::perform(const run::DataWorkers& list) {
  bool listed = std::any_of(list.workers.begin(), list.workers.end(),
                            [this](const auto& worker) { return worker.node == hello_.instance; });
  if (listed) say(random_.up_to(3s), run::LoaderPrepared{});
}

void Node::perform(const run::Settle&) { say(random_.up_to(200ms + disk), run::OutputSettled{}); }

void Node::perform(const run::StartRanks& order) {
  world_.require(living() == 0, fmt::format("node {}: ranks are started while others live", number_));
  ranks_.clear();
  generation_ = order.generation;
  gone_wanted_ = false;
  auto folders_made = random_.up_to(disk);
  if (folders_made == Duration{}) return start(order);
  later(folders_made, [this, order, mine = ++starting_, of = incarnation_] {
    if (of != incarnation_) return;
    by_agent([this, order, mine] {
      if (mine == starting_) tell(run::DeadlineReached{});  // as the agent's loop does
      if (mine == starting_) start(order);
    });
  });
}

void Node::start(const run::StartRanks& order) {
  for (const auto& share : order.shares) {
    for (int local = 0; local < share.local_world_size; ++local) {
      Rank rank{share.first_rank.value + local};
      ranks_.push_back(std::make_unique<SimulatedRank>(SimulatedRank{order.generation, rank}));
      run::RankSpawned spawned{order.generation, rank, 100 + rank.value, clock()};
      say({}, spawned);
      world_.spawned(number_, *ranks_.back(), order);
    }
  }
}

void Node::perform(const run::SignalRanks& order) {
  for (auto& rank : ranks_) {
    bool meant = std::find(order.ranks.begin(), order.ranks.end(), rank->rank) != order.ranks.end();
    if (meant && order.generation == generation_) deliver(*rank, order.signal);
  }
}

void Node::deliver(SimulatedRank& rank, int signal) {
  if (!rank.alive || signal == SIGUSR1) return;
  auto end = [this, &rank, of = rank.generation](run::ExitStatus status) {
    return [this, &rank, of, status] {
      if (of == generation_) end_rank(rank, status);
    };
  };
  if (signal == SIGKILL) return later(random_.up_to(kLongestDeath), end({0, SIGKILL}));
  if (!calm && random_.chance(5)) return;  // heeds no signal
  run::ExitStatus status{0, signal};
  if (!calm && random_.chance(10)) status = {random_.between(0, 1)};
  later(random_.up_to(calm || random_.chance(90) ? 20ms : 2s), end(status));
}

void Node::sweep(int signal) {
  gone_wanted_ = true;
  ++starting_;
  for (auto& rank : ranks_) deliver(*rank, signal);
  check_gone();
}

void Node::check_gone() {
  if (gone_wanted_ && living() == 0) say({}, run::GenerationGone{generation_, clock()});
}

void Node::end_rank(SimulatedRank& rank, run::ExitStatus status) {
  if (!rank.alive) return;
  rank.alive = false;
  say({}, run::RankExited{rank.generation, rank.rank, status, rank.told, clock()});
  world_.died(number_, rank, status);
  check_gone();
}

void Node::begin_to_end(SimulatedRank& rank, run::Evidence words, Duration cleanup) {
  rank.ending = true;
  rank.told = std::move(words);
  later(cleanup, [this, &rank, of = rank.generation] {
    if (of == generation_) end_rank(rank, {1});
  });
}

void Node::kill_rank(std::size_t index) {
  if (index < ranks_.size() && !frozen_) end_rank(*ranks_[index], {0, SIGKILL});
}

void Node::kill_agent() {
  if (!agent_) return;
  agent_.reset();
  ++deadline_;
  ++incarnation_;
  kill_all(kKeeper);
}

void Node::kill_all(Duration within) {
  for (auto& rank : ranks_) {
    later(random_.up_to(within), [this, raw = rank.get(), of = rank->generation] {
      if (of == generation_) end_rank(*raw, {0, SIGKILL});
    });
  }
}

void Node::cut_power() {
  agent_.reset();
  ++incarnation_;
  for (auto& rank : ranks_) {
    if (std::exchange(rank->alive, false)) world_.died(number_, *rank, {0, SIGKILL});
  }
  ++deadline_;
  backlog_.clear();
  powered_ = frozen_ = false;
}

void Node::freeze() {
  if (frozen_) return;
  frozen_ = true;
  frozen_at_ = agenda_.now();
}

void Node::thaw() {
  if (!std::exchange(frozen_, false)) return;
  thawed_at_ = agenda_.now();
  auto waited = std::exchange(backlog_, {});
  for (auto& what : waited) here(std::move(what));
}

bool Node::excused() const { return frozen_ || (thawed_at_ != Instant{} && agenda_.now() < thawed_at_ + kThawGrace); }

int Node::living() const {
  return static_cast<int>(std::count_if(ranks_.begin(), ranks_.end(), [](const auto& rank) { return rank->alive; }));
}

}  // namespace taas::sim
