#include "world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "run/messages/journal.hpp"

namespace taas::run {
namespace {

using namespace std::chrono_literals;

constexpr Duration kPatience = 150s;    // then the user stops a run that does not end
constexpr Duration kLongestRun = 400s;  // patience, shutdown, killing, output

Policy draw_policy(Random& random) {
  Policy policy;
  policy.world_size = random.between(1, 8);
  for (int rank = 0; rank < policy.world_size; ++rank) policy.node_of_rank.push_back(NodeIndex{rank / 4});
  policy.max_restarts = random.between(0, 3);
  policy.shutdown_timeout = std::chrono::milliseconds(random.chance(20) ? 0 : random.between(1, 30000));
  policy.leftover_timeout = std::chrono::milliseconds(random.between(0, 2000));
  return policy;
}

int draw_signal(Random& random) {
  constexpr int kSignals[]{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
  return kSignals[random.between(0, 5)];
}

bool stops_the_run(int signal) { return signal != SIGUSR1 && signal != SIGUSR2; }

}  // namespace

World::World(std::uint64_t seed) : random_(seed), policy_(draw_policy(random_)), supervisor_(policy_), now_(kStart) {
  constexpr int kTrouble[]{0, 5, 20, 60};
  trouble_ = kTrouble[random_.between(0, 3)];
}

Outcome World::run() {
  set_the_scene();
  while (!agenda_.empty() && now_ < kStart + 2 * kLongestRun) {
    auto next = agenda_.begin();
    now_ = next->first.first;
    auto what = std::move(next->second);
    agenda_.erase(next);
    what();
  }
  require(outcome_.finished, "the run never ends");
  require(outcome_.length <= kLongestRun, fmt::format("the run took {} s", seconds(outcome_.length)));
  return outcome_;
}

void World::set_the_scene() {
  if (random_.chance(2)) post(SignalReceived{SIGINT, now_});  // before anything
  later(0s, [this] { post(RunStarted{now_}); });
  for (int i = random_.chance(30) ? random_.between(1, 3) : 0; i > 0; --i) {
    later(random_.up_to(random_.chance(50) ? 100ms : 30s), [this] {
      post(SignalReceived{draw_signal(random_), now_});
    });
  }
  later(kPatience, [this] { post(SignalReceived{SIGINT, now_}); });
  for (int i = random_.between(0, 5); i > 0; --i) later(random_.up_to(30s), [this] { annoy(); });
}

/// Events that are about another generation, a rank that does not exist, or nothing at all.
void World::annoy() {
  Generation other{generation_.value + (random_.chance(50) ? 1 : -1)};
  Rank nobody{random_.chance(50) ? -1 : policy_.world_size};
  Rank anybody{random_.between(0, policy_.world_size - 1)};
  const Event events[]{RankExited{other, anybody, {1}, {}, now_},
                       RankExited{generation_, nobody, {1}, {}, now_},
                       RankSpawned{other, anybody, 1, now_},
                       RankSpawnFailed{other, anybody, ENOENT, "", now_},
                       RankJoined{generation_, nobody, now_},
                       StoreReached{other, now_},
                       GenerationGone{other, now_},
                       DeadlineReached{now_},
                       RunStarted{now_}};
  feed(events[random_.between(0, 8)]);
}

void World::later(Duration delay, std::function<void()> what) {
  agenda_.emplace(std::pair(now_ + delay, appointments_++), std::move(what));
}

/// Now, and sometimes once more later.
void World::post(Event event) {
  bool repeatable = !std::holds_alternative<SignalReceived>(event) && !std::holds_alternative<OutputSettled>(event);
  if (repeatable && random_.chance(5)) later(random_.up_to(5s), [this, event] { feed(event); });
  feed(event);
}

void World::feed(const Event& event) {
  if (const auto* signal = std::get_if<SignalReceived>(&event); signal && stops_the_run(signal->signal)) {
    if (settling_) ++signals_while_settling_;
    bool running = generation_.value < 0 || !gone_wanted_;
    if (!failed_ && running && stopped_by_ == 0 && !outcome_.finished) stopped_by_ = signal->signal;
  }
  if (on_line) on_line(journal_line(event, kStart));
  auto actions = supervisor_.handle(event);
  require(actions.empty() || !outcome_.finished, "something is decided after the end");
  if (stopping() && stopped_at_ == Instant{}) stopped_at_ = now_;
  for (const auto& action : actions) {
    if (on_line) on_line(journal_line(action, kStart));
    std::visit([this](const auto& decided) { act(decided); }, action);
  }
  check_reaction(event, actions);
}

void World::require(bool holds, const std::string& what) {
  if (!holds) outcome_.violations.push_back(fmt::format("at {:.6f} s: {}", seconds(now_ - kStart), what));
}

/// Nobody is forgotten: a rank that appears late is stopped, and the end of the last rank is followed up at once.
void World::check_reaction(const Event& event, const std::vector<Action>& decided) {
  if (outcome_.finished || generation_.value < 0) return;
  require(any_rank_lives() || to_spawn_ > 0 || gone_wanted_, "all ranks have ended and nothing is done about it");
  const auto* spawned = std::get_if<RankSpawned>(&event);
  bool late = spawned != nullptr && spawned->rank == newcomer_ && stopping() && killed_at_ == Instant{};
  newcomer_ = Rank{-1};
  if (!late) return;
  require(std::any_of(decided.begin(), decided.end(),
                      [](const Action& action) { return std::holds_alternative<SignalRanks>(action); }),
          "a rank that appears while the others are stopped is not");
}

/// The fault that came first, if ranks that only lost a peer are left aside as long as there is any other.
const World::Fault* World::first_fault() const {
  auto comes_before = [](const Fault& a, const Fault& b) {
    return std::pair(a.lost_peer, a.cause) < std::pair(b.lost_peer, b.cause);
  };
  auto first = std::min_element(faults_.begin(), faults_.end(), comes_before);
  return first == faults_.end() ? nullptr : &*first;
}

void World::check_culprit(const Verdict& verdict) {
  const Fault* first = first_fault();
  bool ended_all = !gave_up_allowed_;  // a culprit that never ended cannot be named
  if (first == nullptr || !ended_all) return require(first != nullptr, "a failure without a fault");
  require(verdict.culprit == first->rank, fmt::format("rank {} is blamed for what rank {} did ({})",
                                                      verdict.culprit.value, first->rank.value, verdict.summary));
  require(verdict.exit_code == first->exit_code,
          fmt::format("exit code {} instead of {} ({})", verdict.exit_code, first->exit_code, verdict.summary));
  require(verdict.generation == generation_, "the verdict is about another generation");
}

void World::check_end(const Verdict& verdict) {
  require(alive_in(generation_) == 0 || gave_up_allowed_, "processes outlive the run");
  require(!deadline_set_ || generation_.value < 0, "a deadline is left");
  require((verdict.exit_code == 0) == (verdict.cause == Cause::kSuccess), "exit code and cause do not fit");
  bool started = generation_.value >= 0;
  require(!started || settled_ || signals_while_settling_ >= 2, "ends before output is on disk");
  if (stopped_by_ != 0) require(verdict.exit_code == 128 + stopped_by_, "the user's signal is not the exit code");
  if (failed_) require(reported_, "ends without a report of the failure");
  bool success = !failed_ && stopped_by_ == 0 && settled_ && !output_lost_;
  if (success)
    require(verdict.cause == Cause::kSuccess, "training that ended well is called a failure: " + verdict.summary);
  bool output_failed = !failed_ && stopped_by_ == 0 && settled_ && output_lost_;
  if (output_failed) require(verdict.cause == Cause::kOutputFailed, "lost output is not told");
}

}  // namespace taas::run
