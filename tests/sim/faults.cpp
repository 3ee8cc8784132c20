#include <fmt/format.h>

#include <csignal>
#include <utility>

#include "cluster.hpp"

namespace taas::sim {
namespace {

using namespace std::chrono_literals;

constexpr Duration kStallPeace = 3s;
constexpr Duration kWakeApart = 500ms;
constexpr Duration kGlitch = 1s;
constexpr std::size_t kLongWords = 200'000;
constexpr Duration kResetPeace = 1500ms;  // a reset and a cut at once is more than closed_grace promises to survive

run::Evidence words_of(const std::string& exception, Instant at) {
  run::Evidence evidence;
  evidence.last_lines = {"Traceback (most recent call last):", "  File \"train.py\", line 3, in step", exception};
  evidence.first_error_at = at;
  return evidence;
}

}  // namespace

void Cluster::set_the_scene() {
  for (int number = 0; number < settings_.machines(); ++number) {
    agenda_.after(random_.up_to(settings_.longest_start), [this, number] { node(number).start_agent(); });
  }
  for (int i = 0; i < settings_.node_faults; ++i) {
    agenda_.after(random_.up_to(random_.chance(50) ? 5s : 40s), [this] { draw_node_fault(); });
  }
  for (int i = 0; i < settings_.stalls; ++i) {
    agenda_.after(random_.up_to(random_.chance(50) ? 5s : 40s), [this] { stall(); });
  }
  if (settings_.suspension) agenda_.after(random_.up_to(30s), [this] { suspend_everything(); });
  if (settings_.user_signal == 0) return;
  agenda_.after(random_.up_to(20s), [this] {
    feed(run::Event(run::SignalReceived{settings_.user_signal, agenda_.now()}));
  });
}

/// A short one may cost nobody anything; a long one looks to agents as if the coordinator were gone.
void Cluster::stall() {
  if (!may_stand_still()) return;
  Duration length = random_.up_to(settings_.longest_stall);
  say(fmt::format("fault: the coordinator's loop stalls for {:.3f} s", seconds(length)));
  for (int number = 0; length > kHarmlessStall && number < settings_.machines(); ++number) {
    blame(number);
    if (length > settings_.harmless() || agenda_.now() < quiet_until_[number]) losable_nodes_.insert(number);
  }
  stand_still(length);
}

/// A job that SLURM suspends: clocks run on, and whoever is first awake finds the others asleep still.
void Cluster::suspend_everything() {
  if (!may_stand_still()) return;
  const Duration length = 2s + random_.up_to(random_.chance(50) ? 10s : 100s);
  say(fmt::format("fault: everything is suspended for {:.3f} s", seconds(length)));
  missing_allowed_ = true;
  for (int number = 0; number < settings_.machines(); ++number) {
    blame(number);
    const auto patience = settings_.policy.lost_after;
    const bool unlucky = length < patience && length > patience * 8 / 10 - 1s;  // little is left to wait for an answer
    const bool starting = agenda_.now() < started_ + settings_.disk + 1s;       // such ranks are killed
    if (unlucky || starting || agenda_.now() < quiet_until_[number]) losable_nodes_.insert(number);
    quiet_until_[number] = std::max(quiet_until_[number], agenda_.now() + length + kStallPeace);
    Node& host = node(number);
    host.freeze();
    agenda_.after(length + random_.up_to(kWakeApart), [&host] { host.thaw(); });
  }
  stand_still(length + random_.up_to(kWakeApart));
}

bool Cluster::may_stand_still() const {
  const bool peace = agenda_.now() >= stalled_until_ + kStallPeace && agenda_.now() >= agents_stopped_until_;
  return !outcome_.finished && peace;
}

void Cluster::stand_still(Duration length) {
  stalled_until_ = agenda_.now() + length;
  agenda_.at(stalled_until_, [this, length] {
    if (length > kHarmlessStall) handle(run::CoordinatorStalled{length, agenda_.now()});
    go_on();
  });
}

void Cluster::go_on() {
  for (auto& event : std::exchange(backlog_, {})) {
    if (auto* happened = std::get_if<run::Event>(&event)) {
      std::visit([this](auto& inner) { inner.at = agenda_.now(); }, *happened);
    } else {
      std::visit(
          [this]<class Told>(Told& told) {
            if constexpr (requires { told.at; }) told.at = agenda_.now();
          },
          event);
    }
    handle(event);
  }
}

void Cluster::draw_node_fault() {
  if (outcome_.finished) return;
  int number = random_.between(0, settings_.machines() - 1);
  if (random_.chance(30) && !node(number).ranks().empty()) {
    auto index = static_cast<std::size_t>(random_.between(0, static_cast<int>(node(number).ranks().size()) - 1));
    auto& victim = *node(number).ranks()[index];
    if (!victim.alive) return;
    say(fmt::format("fault: rank {} on host{} is killed", victim.rank.value, number));
    if (victim.generation == generation_) break_rank(victim.rank);
    return node(number).kill_rank(index);
  }
  if (agenda_.now() < quiet_until_[number] || node(number).frozen()) return;
  random_.chance(10) ? stop_agent(number) : inject(number, random_.between(0, 9));
}

/// Whatever happens to its network meanwhile. For longer, ranks of the past would live on until it is continued; so
/// they would where the coordinator has not answered before.
void Cluster::stop_agent(int number) {
  if (agenda_.now() < stalled_until_ + kStallPeace) return;
  Duration length = random_.up_to(settings_.policy.lost_after * 8 / 10);
  agents_stopped_until_ = std::max(agents_stopped_until_, agenda_.now() + length);
  say(fmt::format("fault: the agent of host{} stands still for {:.3f} s", number, seconds(length)));
  blame(number);
  losable_nodes_.insert(number);
  Node& host = node(number);
  host.stop_agent();
  if (random_.chance(50)) agenda_.after(random_.up_to(length), [this, number] { inject(number, 3); });
  agenda_.after(length, [&host] { host.here([&host] { host.continue_agent(); }); });
}

void Cluster::inject(int number, int kind) {
  blame(number);
  Node& host = node(number);
  const auto patience = settings_.policy.lost_after;
  Duration length = random_.up_to(random_.chance(50) ? patience * 6 / 5 : 2 * patience + 15s);
  const bool is_cut = kind >= 3 && kind <= 5;
  const bool stalled = agenda_.now() < stalled_until_ + kStallPeace;
  if (!is_cut || stalled || length > settings_.harmless()) losable_nodes_.insert(number);
  auto tell = [&](const char* what) {
    say(fmt::format("fault: host{} {} for {:.3f} s", number, what, seconds(length)));
  };
  auto id = connection_of(number);
  switch (kind) {
    case 0:
      tell("loses its agent");
      host.kill_agent();
      if (id.value >= 0) close_by_agent(id, "its agent has ended");
      agenda_.after(length, [&host] { host.here([&host] { host.start_agent(); }); });
      return;
    case 1:
      tell("loses power");
      host.cut_power();
      if (id.value >= 0) connections_.at(id).agent_open = false;
      agenda_.after(length, [&host] {
        host.restore_power();
        host.start_agent();
      });
      return;
    case 2:
      if (host.agent_stopped()) return;
      tell("freezes");
      host.freeze();
      quiet_until_[number] = agenda_.now() + length + 1s;
      agenda_.after(length, [&host] { host.thaw(); });
      return;
    case 3:
    case 4:
    case 5:
      tell(kind == 3 ? "is cut off" : kind == 4 ? "cannot send" : "cannot receive");
      host.up.cut = kind != 5;
      host.down.cut = kind != 4;
      quiet_until_[number] = agenda_.now() + 2 * length + 1s;  // TCP may carry nothing for as long again
      agenda_.after(length, [this, number, length] { heal(number, length); });
      return;
    case 9:
      tell("has a link that carries nothing any more");
      quiet_until_[number] = agenda_.now() + 3 * patience;
      if (id.value < 0) return;
      connections_.at(id).up->die();
      connections_.at(id).down->die();
      return;
    default:
      tell(kind == 6 ? "is reset" : kind == 7 ? "is reset, and does not know" : "is reset, and alone knows");
      quiet_until_[number] = agenda_.now() + kResetPeace;
      if (id.value < 0 || host.agent_stopped()) return;
      auto& connection = connections_.at(id);
      if (kind != 7 && std::exchange(connection.agent_open, false)) host.tell(run::LinkDown{"reset", {}});
      if (kind != 8 && std::exchange(connection.coordinator_open, false)) {
        feed(run::AgentLeft{id, "reset", true, agenda_.now()});
      }
  }
}

/// When the verdict is under way, links stall for a moment. TCP sends again after up to as long as they stalled.
void Cluster::disturb_the_end() {
  for (int number = 0; number < settings_.machines(); ++number) {
    const auto& host = node(number);
    auto id = connection_of(number);
    bool sound = known_.contains(id) && connections_.at(id).coordinator_open && !blamed_nodes_.contains(number);
    if (!sound || host.refuses || host.hello().version != settings_.policy.version) continue;
    told_at_the_end_.insert(number);
    if (!random_.chance(30)) continue;
    Duration length = random_.up_to(kGlitch);
    say(fmt::format("fault: host{} is cut off for {:.3f} s at the end", number, seconds(length)));
    node(number).up.cut = node(number).down.cut = true;
    agenda_.after(length, [this, number, length] { heal(number, length); });
  }
}

/// What a rank does if it is let live. Later generations fare better, so that runs end.
void Cluster::live(int number, SimulatedRank& rank) {
  Node& host = node(number);
  auto alive = [this, &rank, of = rank.generation] { return of == generation_ && rank.alive && !rank.ending; };
  if (settings_.calm || random_.chance(90)) {
    host.later(random_.up_to(200ms), [this, of = rank.generation, who = rank.rank] {
      if (of == generation_ && !seat_.empty()) {
        Node& first = node(seat_.front());
        first.say({}, run::StoreReached{of, first.clock()});
        first.say({}, run::RankJoined{of, who, first.clock()});
      }
    });
  }
  bool chosen = fails_once_ && rank.generation.value == 0 && rank.rank.value == settings_.policy.ranks_on_node[0] - 1;
  bool fails = chosen || random_.chance(settings_.rank_trouble / (1 + rank.generation.value));
  auto how = chosen ? 0 : random_.between(0, 4);
  auto lingers = [&host, of = rank.generation, who = rank.rank](Duration after, run::Lingering state) {
    auto words = words_of("ValueError: bad shape", host.clock());
    host.say(after, run::RankLingers{of, who, state, "thread \"writer\"", words, host.clock()});
    return words;
  };
  if (!fails && !settings_.calm && random_.chance(3)) {  // an exception that was caught
    lingers(random_.up_to(1s), run::Lingering::kSilent);
    lingers(1s + random_.up_to(1s), run::Lingering::kGoesOn);
  }
  if (!fails) {
    return host.later(settings_.work + random_.up_to(50ms), [this, &host, &rank, alive] {
      if (alive() && !broken_) host.end_rank(rank, {});
    });
  }
  Duration until = chosen ? Duration(500ms) : random_.up_to(random_.chance(50) ? 100ms : 10s);
  host.later(until, [this, &host, &rank, alive, how, lingers] {
    if (!alive()) return;
    break_rank(rank.rank);
    broken_ = true;
    if (how == 0) return host.end_rank(rank, {random_.between(2, 99)});
    if (how == 1) return host.end_rank(rank, {0, SIGSEGV});
    if (how == 2) {  // its process waits for a thread
      rank.ending = true;
      rank.told = lingers(3s, run::Lingering::kFailed);
      return;
    }
    std::string more(random_.chance(settings_.long_words) ? kLongWords : 0, '\xff');
    host.begin_to_end(rank, words_of("ValueError: bad shape" + more, host.clock()), random_.up_to(500ms));
  });
}

/// Ranks on other nodes see the connection close, if the network tells them.
void Cluster::lose_peers(const SimulatedRank& gone) {
  if (fails_once_) return;
  for (auto& host : nodes_) {
    if (host->up.cut || host->down.cut) continue;
    for (const auto& other : host->ranks()) {
      if (!other->alive || other->ending || other->generation != gone.generation || random_.chance(30)) continue;
      host->later(1ms + random_.up_to(300ms), [this, raw = host.get(), rank = other.get(), of = gone.generation] {
        if (of != generation_ || !rank->alive || rank->ending) return;
        auto words = words_of("RuntimeError: [gloo/pair.cc:561] Connection closed by peer", raw->clock());
        raw->begin_to_end(*rank, std::move(words), random_.up_to(300ms));
      });
    }
  }
}

}  // namespace taas::sim
