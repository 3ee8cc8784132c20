#include "world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "run/messages/journal.hpp"

namespace taas::run {
namespace {

using namespace std::chrono_literals;

constexpr Instant kStart{1000s};
constexpr Duration kPatience = 150s;     // then the user stops a run that does not end
constexpr Duration kLongestRun = 400s;   // patience, shutdown, killing, output
constexpr Duration kLateness = 50ms;     // of the timer, with repetitions
constexpr Duration kLongestDeath = 31s;  // between SIGKILL and giving up on a process
constexpr Duration kUnkillable = 25s;    // from here on the supervisor may give up on a process

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

bool World::any_rank_lives() const {
  return std::any_of(processes_.begin(), processes_.end(), [&](const auto& process) {
    return process->generation == generation_ && process->alive && !process->grandchild;
  });
}

void World::act(const GatherNodes& /*action*/) {
  require(alive_in(generation_) == 0, "nodes are gathered while the former generation lives");
  later(random_.up_to(random_.chance(80) ? 10ms : 5s), [this] {
    post(NodesGathered{policy_.world_size, policy_.node_of_rank, {}, now_});
  });
}

void World::act(const StartGeneration& action) {
  require(action.generation.value == generation_.value + 1, "a generation is left out or started twice");
  require(action.generation.value <= policy_.max_restarts, "more restarts than allowed");
  require(alive_in(generation_) == 0, "processes of the former generation live on");
  require(stopped_by_ == 0, "restarted after the user had stopped the run");
  generation_ = action.generation;
  ++outcome_.generations;
  spawning_ = true;
  to_spawn_ = policy_.world_size;
  stopped_at_ = killed_at_ = Instant{};
  gone_wanted_ = failed_ = gave_up_allowed_ = false;
  faults_.clear();
  Duration delay{};
  bool slow = random_.chance(10);
  for (int rank = 0; rank < policy_.world_size; ++rank) {
    delay += random_.up_to(slow ? Duration(100ms) : Duration(500us));
    later(delay, [this, rank, generation = generation_, plan = draw_plan(random_, trouble_)] {
      spawn(generation, Rank{rank}, plan);
    });
  }
}

void World::act(const SignalRanks& action) {
  require(action.generation == generation_, "signals for another generation");
  require(!action.ranks.empty(), "a signal for nobody");
  for (Rank rank : action.ranks) {
    auto found = std::find_if(processes_.begin(), processes_.end(), [&](const auto& process) {
      return process->generation == generation_ && process->rank == rank && !process->grandchild;
    });
    require(found != processes_.end() && (*found)->alive, "a signal for a rank that does not live");
    if (found != processes_.end()) deliver(**found, action.signal);
  }
}

void World::act(const KillGeneration& action) {
  bool first = killed_at_ == Instant{} && any_rank_lives();
  require(!first || now_ <= stopped_at_ + policy_.shutdown_timeout + kLateness,
          "killed long after the shutdown timeout");
  sweep(action.generation, SIGKILL);
}

void World::act(const SweepGeneration& action) {
  require(!any_rank_lives(), "swept while ranks live");
  sweep(action.generation, action.signal);
}

void World::act(const SetDeadline& action) {
  deadline_set_ = true;
  // A timer may be late, or early by a little; then it has run out all the same.
  Duration error = random_.chance(10) ? -random_.up_to(1ms) : random_.up_to(20ms);
  later(std::max(action.at - now_ + error, Duration{}), [this, mine = ++deadline_] {
    if (!deadline_set_ || mine != deadline_) return;
    deadline_set_ = false;
    feed(DeadlineReached{now_});
  });
}

void World::act(const ClearDeadline&) { deadline_set_ = false; }

void World::act(const SettleOutput&) {
  require(!settling_, "output is settled twice");
  bool in_time = killed_at_ == Instant{} || now_ <= killed_at_ + kLongestDeath;
  require(in_time, "what cannot be killed is waited for too long");
  settling_ = true;
  output_lost_ = random_.chance(10);
  later(random_.up_to(random_.chance(90) ? 1s : 90s), [this] {
    settled_ = true;
    post(OutputSettled{output_lost_ ? "no space left on device" : "", now_});
  });
}

void World::act(const Notify& action) { require(!action.text.empty(), "nothing is told"); }

void World::act(const ReportFailure& action) {
  require(failed_, "a failure is reported, but nothing has failed");
  require(stopped_by_ == 0, "a failure is reported though the user had stopped the run before");
  reported_ = true;
  check_culprit(action.verdict);
  if (action.restarting)
    require(action.verdict.cause != Cause::kExecFailed, "restarts a program that cannot be executed");
}

void World::act(const Finish& action) {
  outcome_.finished = true;
  outcome_.verdict = action.verdict;
  outcome_.length = now_ - kStart;
  check_end(action.verdict);
}

void World::spawn(Generation generation, Rank rank, const RankPlan& plan) {
  if (generation != generation_ || !spawning_) return;
  --to_spawn_;
  if (plan.fate == RankPlan::Fate::kCannotStart) {
    spawning_ = false;
    to_spawn_ = 0;
    if (!failed_ && stopped_by_ == 0) faults_.push_back({rank, now_, false, plan.code == ENOENT ? 127 : 126});
    failed_ = failed_ || stopped_by_ == 0;
    return post(RankSpawnFailed{generation, rank, plan.code, "cannot execute ./x: it is not there", now_});
  }
  processes_.push_back(std::make_unique<Process>(Process{generation, rank, plan}));
  Process& process = *processes_.back();
  live(process);
  newcomer_ = rank;
  post(RankSpawned{generation, rank, 100 + rank.value, now_});
}

void World::live(Process& process) {
  const RankPlan& plan = process.plan;
  later(plan.acts_after, [this, &process] {
    if (!process.alive || process.ending) return;
    const RankPlan& mine = process.plan;
    if (mine.fate == RankPlan::Fate::kRaises) raise(process);
    if (mine.fate == RankPlan::Fate::kExits) end(process, {mine.code});
    if (mine.fate == RankPlan::Fate::kDies) end(process, {0, mine.signal});
    if (mine.fate == RankPlan::Fate::kSucceeds || mine.fate == RankPlan::Fate::kDeserts) end(process, {});
  });
  if (!plan.joins_after) return;
  later(*plan.joins_after, [this, &process] {
    if (!process.alive) return;
    post(StoreReached{process.generation, now_});
    post(RankJoined{process.generation, process.rank, now_});
  });
}

/// Between its last words and its exit a rank may close its connections at any moment.
void World::raise(Process& process) {
  process.ending = true;
  process.told = words_of_raise(now_);
  if (!failed_ && stopped_by_ == 0) faults_.push_back({process.rank, now_, false, 1});
  later(random_.up_to(process.plan.cleans_up_for), [this, &process] { lose_peers(process); });
  later(process.plan.cleans_up_for, [this, &process] { end(process, {1}); });
}

void World::lose_peers(const Process& gone) {
  for (auto& other : processes_) {
    bool connected = other->generation == gone.generation && other->rank != gone.rank && !other->grandchild;
    if (!connected || !other->alive || !other->plan.notices_lost_peer_after) continue;
    later(*other->plan.notices_lost_peer_after + 1us, [this, process = other.get()] {
      if (!process->alive || process->ending) return;
      process->ending = true;
      process->told = words_of_lost_peer(now_);
      if (!failed_ && stopped_by_ == 0) faults_.push_back({process->rank, now_, true, 1});
      later(random_.up_to(400ms), [this, process] { end(*process, {1}); });
    });
  }
}

void World::deliver(Process& process, int signal) {
  if (!process.alive || signal == SIGUSR1 || signal == SIGUSR2) return;
  const RankPlan& plan = process.plan;
  if (signal == SIGKILL) {
    gave_up_allowed_ = gave_up_allowed_ || plan.survives_kill_for > kUnkillable;
    return later(plan.survives_kill_for + random_.up_to(5ms), [this, &process] { end(process, {0, SIGKILL}); });
  }
  auto how = process.grandchild ? *plan.leaves_behind : plan.on_stop;
  ExitStatus status{how == RankPlan::OnStop::kEndsBadly ? 1 : 0, how == RankPlan::OnStop::kDies ? signal : 0};
  if (how != RankPlan::OnStop::kIgnores) later(plan.stops_after, [this, &process, status] { end(process, status); });
}

void World::sweep(Generation generation, int signal) {
  require(generation == generation_, "sweeps another generation");
  if (signal == SIGKILL) {
    spawning_ = false;
    to_spawn_ = 0;
    if (killed_at_ == Instant{}) killed_at_ = now_;
  }
  gone_wanted_ = true;
  for (auto& process : processes_) deliver(*process, signal);
  check_gone();
}

void World::end(Process& process, ExitStatus status) {
  if (!process.alive) return;
  process.alive = false;
  if (process.grandchild) return check_gone();
  if (process.plan.leaves_behind) {
    processes_.push_back(std::make_unique<Process>(Process{process.generation, process.rank, process.plan, true}));
  }
  bool counts = !status.success() && !failed_ && stopped_by_ == 0;
  if (counts && !process.ending) {
    faults_.push_back({process.rank, now_, false, status.signal == 0 ? status.code : 128 + status.signal});
  }
  failed_ = failed_ || counts;
  if (!status.success() || process.plan.fate == RankPlan::Fate::kDeserts) lose_peers(process);
  post(RankExited{process.generation, process.rank, status, process.told, now_});
  check_gone();
}

void World::check_gone() {
  if (!gone_wanted_ || alive_in(generation_) > 0) return;
  later(0s, [this, generation = generation_] { post(GenerationGone{generation, now_}); });
}

int World::alive_in(Generation generation) const {
  return static_cast<int>(std::count_if(processes_.begin(), processes_.end(), [&](const auto& process) {
    return process->generation == generation && process->alive;
  }));
}

void World::require(bool holds, const std::string& what) {
  if (!holds) outcome_.violations.push_back(fmt::format("at {:.6f} s: {}", seconds(now_ - kStart), what));
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
