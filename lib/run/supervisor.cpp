#include "run/supervisor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <optional>
#include <utility>

#include "run/deadlines.hpp"
#include "run/generation.hpp"
#include "run/verdict.hpp"
#include "run/words.hpp"

namespace taas::run {
namespace {

using namespace std::chrono_literals;

constexpr auto kEcho = 250ms;
constexpr auto kKillInterval = 1s;
constexpr auto kKillNoticeAfter = 5s;
constexpr auto kGiveUpAfter = 30s;
constexpr auto kSettleNoticeInterval = 30s;

enum class Phase {
  kIdle,
  kRunning,   ///< ranks are being started or live
  kStopping,  ///< ranks were told to end
  kSweeping,  ///< all ranks have ended; what they left behind has not
  kSettling,  ///< output is being put on disk
  kFinished,
};

Instant instant_of(const Event& event) {
  return std::visit([](const auto& happened) { return happened.at; }, event);
}

}  // namespace

struct Supervisor::State {
  explicit State(Policy given) : policy(std::move(given)), record(Generation{0}, policy.world_size) {}

  // One overload an event.
  void on(const RunStarted&);
  void on(const RankSpawned&);
  void on(const RankSpawnFailed&);
  void on(const RankJoined&);
  void on(const RankExited&);
  void on(const GenerationGone&);
  void on(const SignalReceived&);
  void on(const DeadlineReached&);
  void on(const OutputSettled&);

  void on_stop_signal(int signal);
  [[nodiscard]] bool ends_the_run(int signal) const;
  bool is_echo(int signal);
  void on_timer(Timer timer);

  // Into another phase.
  void start(Generation generation);
  void stop(int signal);
  void check_ranks();
  void sweep();
  void conclude();
  void settle();
  void finish();

  void kill();
  void await_death();
  void tell_who_has_not_joined();
  void tell_what_does_not_die(std::string_view then);
  [[nodiscard]] Verdict judge() const;
  [[nodiscard]] bool restarts() const;

  void emit(Action action) { actions.push_back(std::move(action)); }
  void notify(std::string text) { emit(Notify{std::move(text)}); }
  void announce_deadline();

  Policy policy;
  Phase phase = Phase::kIdle;
  GenerationRecord record;  // of the generation at hand
  int user_signal = 0;      // stopped the run, unless something had failed before
  int last_stop_signal = 0;
  Instant last_stop_at{};
  bool hurried = false;     // by a signal of the user: no restart
  bool unkillable = false;  // processes are left: no restart
  Verdict verdict;
  Deadlines deadlines;
  std::optional<Instant> announced;  // the deadline that the agent knows of
  Instant now{};
  std::vector<Action> actions;  // of the event at hand
};

Supervisor::Supervisor(Policy policy) : state_(std::make_unique<State>(std::move(policy))) {}
Supervisor::~Supervisor() = default;

std::vector<Action> Supervisor::handle(const Event& event) {
  State& state = *state_;
  state.actions.clear();
  if (state.phase == Phase::kFinished) return {};
  state.now = std::max(state.now, instant_of(event));
  std::visit([&state](const auto& happened) { state.on(happened); }, event);
  if (state.phase != Phase::kFinished) state.announce_deadline();
  return std::exchange(state.actions, {});
}

void Supervisor::State::announce_deadline() {
  auto next = deadlines.earliest();
  if (next == announced) return;
  announced = next;
  next ? emit(SetDeadline{*next}) : emit(ClearDeadline{});
}

void Supervisor::State::on(const RunStarted&) {
  if (phase == Phase::kIdle) start(Generation{0});
}

void Supervisor::State::start(Generation generation) {
  phase = Phase::kRunning;
  record = GenerationRecord(generation, policy.world_size);
  deadlines.clear();
  emit(StartGeneration{generation});
}

/// A rank whose start was still under way when the others were told to stop is told now.
void Supervisor::State::on(const RankSpawned& event) {
  bool living = record.spawned(event);
  if (living && phase == Phase::kStopping) emit(SignalRanks{event.generation, {event.rank}, record.stop_signal()});
}

void Supervisor::State::on(const RankSpawnFailed& event) {
  if (!record.spawn_failed(event)) return;
  if (phase == Phase::kRunning) stop(SIGTERM);
  check_ranks();
}

void Supervisor::State::on(const RankJoined& event) {
  if (!record.joined(event) || phase != Phase::kRunning) return;
  auto missing = record.not_joined().size();
  if (missing == 0) deadlines.cancel(Timer::kJoinNotice);
  if (missing + 1 == record.ranks().size() && missing > 0) {
    deadlines.set(Timer::kJoinNotice, now + policy.join_notice_after);
  }
}

void Supervisor::State::on(const RankExited& event) {
  if (!record.exited(event)) return;
  if (phase == Phase::kRunning && record.any_failed()) stop(SIGTERM);
  check_ranks();
}

void Supervisor::State::stop(int signal) {
  phase = Phase::kStopping;
  record.stop(signal, now);
  deadlines.cancel(Timer::kJoinNotice);
  deadlines.set(Timer::kShutdown, now + policy.shutdown_timeout);
  if (auto living = record.living(); !living.empty()) emit(SignalRanks{record.generation(), living, signal});
}

void Supervisor::State::check_ranks() {
  if ((phase == Phase::kRunning || phase == Phase::kStopping) && record.over()) sweep();
}

/// Leftovers of ranks that ended in peace, or that the user stopped, may finish what they do; after a failure nothing
/// is worth waiting for.
void Supervisor::State::sweep() {
  bool failed = phase == Phase::kStopping && user_signal == 0;
  phase = Phase::kSweeping;
  deadlines.cancel(Timer::kJoinNotice);
  deadlines.cancel(Timer::kShutdown);
  if (record.killed()) return;  // GenerationGone is under way
  emit(SweepGeneration{record.generation(), failed ? SIGKILL : SIGTERM});
  if (failed) {
    record.kill(now);
    await_death();
  } else {
    deadlines.set(Timer::kLeftover, now + policy.leftover_timeout);
  }
}

void Supervisor::State::kill() {
  if (record.killed()) return;
  record.kill(now);
  deadlines.cancel(Timer::kShutdown);
  deadlines.cancel(Timer::kLeftover);
  emit(KillGeneration{record.generation()});
  await_death();
}

void Supervisor::State::await_death() {
  deadlines.set(Timer::kKillAgain, now + kKillInterval);
  deadlines.set(Timer::kKillNotice, now + kKillNoticeAfter);
  deadlines.set(Timer::kGiveUp, now + kGiveUpAfter);
}

void Supervisor::State::on(const GenerationGone& event) {
  if (event.generation != record.generation()) return;
  bool asked = phase == Phase::kSweeping || (phase == Phase::kStopping && record.killed());
  if (!asked) return;
  record.gone(now);
  conclude();
}

void Supervisor::State::on(const SignalReceived& event) {
  if (is_echo(event.signal)) return;
  if (ends_the_run(event.signal)) return on_stop_signal(event.signal);
  bool ranks_may_live = phase == Phase::kRunning || phase == Phase::kStopping;
  auto living = record.living();
  if (ranks_may_live && !living.empty()) emit(SignalRanks{record.generation(), living, event.signal});
}

bool Supervisor::State::ends_the_run(int signal) const {
  return std::find(policy.stop_signals.begin(), policy.stop_signals.end(), signal) != policy.stop_signals.end();
}

/// A batch system signals every process of a job, so one wish to stop arrives directly and through the keeper. Only a
/// person at a terminal, who sends SIGINT, means to kill so soon after asking.
bool Supervisor::State::is_echo(int signal) {
  bool echo = signal != SIGINT && ends_the_run(signal) && signal == last_stop_signal && now - last_stop_at < kEcho;
  if (ends_the_run(signal) && !echo) {
    last_stop_signal = signal;
    last_stop_at = now;
  }
  return echo;
}

void Supervisor::State::on_stop_signal(int signal) {
  switch (phase) {
    case Phase::kIdle:
      user_signal = signal;
      verdict = judge();
      return finish();
    case Phase::kRunning:
      user_signal = signal;
      notify(fmt::format("{}: stopping all ranks; once more kills them", signal_name(signal)));
      stop(signal);
      return check_ranks();
    case Phase::kStopping:
    case Phase::kSweeping:
      hurried = true;
      if (!record.killed()) notify(fmt::format("{}: killing what is left", signal_name(signal)));
      return kill();
    case Phase::kSettling:
      if (std::exchange(hurried, true)) return finish();
      return notify(fmt::format("{}: output is being put on disk; once more gives it up", signal_name(signal)));
    case Phase::kFinished:
      return;
  }
}

void Supervisor::State::on(const DeadlineReached& event) {
  announced.reset();  // the agent's timer has run out
  while (auto timer = deadlines.take_due(event.at)) on_timer(*timer);
}

void Supervisor::State::on_timer(Timer timer) {
  switch (timer) {
    case Timer::kJoinNotice:
      return tell_who_has_not_joined();
    case Timer::kShutdown:
      return kill();
    case Timer::kLeftover:
      notify("processes that ranks left behind did not end: killing them");
      return kill();
    case Timer::kKillAgain:
      deadlines.set(Timer::kKillAgain, now + kKillInterval);
      return emit(KillGeneration{record.generation()});
    case Timer::kKillNotice:
      return tell_what_does_not_die("still trying");
    case Timer::kGiveUp:
      unkillable = true;
      tell_what_does_not_die("giving up on them");
      return conclude();
    case Timer::kSettleNotice:
      deadlines.set(Timer::kSettleNotice, now + kSettleNoticeInterval);
      return notify("output is still being put on disk");
  }
}

void Supervisor::State::tell_who_has_not_joined() {
  auto missing = record.not_joined();
  auto world = record.ranks().size();
  notify(fmt::format("waiting for {} to join: {} of {} have", name_ranks(missing, policy.node_of_rank),
                     world - missing.size(), world));
}

void Supervisor::State::tell_what_does_not_die(std::string_view then) {
  auto living = record.living();
  auto who = living.empty() ? "processes that ranks left behind" : name_ranks(living, policy.node_of_rank);
  notify(fmt::format("{} cannot be killed, which is so for a process that waits for a device or a network disk: {}",
                     who, then));
}

/// The generation is over, its verdict known: the next one begins at once, or the run ends.
void Supervisor::State::conclude() {
  deadlines.clear();
  verdict = judge();
  bool failed = verdict.cause != Cause::kSuccess && verdict.cause != Cause::kStopped;
  if (failed) emit(ReportFailure{verdict, restarts()});
  if (failed && restarts()) return start(Generation{record.generation().value + 1});
  settle();
}

Verdict Supervisor::State::judge() const {
  if (user_signal != 0) return judge_stop(record, user_signal, now);
  return record.any_failed() ? judge_failure(record, policy) : judge_success(record, now);
}

bool Supervisor::State::restarts() const {
  bool curable = verdict.cause != Cause::kExecFailed && !hurried && !unkillable;
  return curable && record.generation().value < policy.max_restarts;
}

void Supervisor::State::settle() {
  phase = Phase::kSettling;
  hurried = false;
  deadlines.set(Timer::kSettleNotice, now + kSettleNoticeInterval);
  emit(SettleOutput{});
}

void Supervisor::State::on(const OutputSettled& event) {
  if (phase != Phase::kSettling) return;
  if (!event.error.empty() && verdict.cause == Cause::kSuccess)
    verdict = judge_output(verdict, event.error);
  else if (!event.error.empty())
    notify(event.error);
  hurried = false;
  finish();
}

void Supervisor::State::finish() {
  bool gave_up_output = phase == Phase::kSettling && hurried && verdict.cause == Cause::kSuccess;
  if (gave_up_output) verdict = judge_output(verdict, "the run was stopped before all of it was there");
  phase = Phase::kFinished;
  deadlines.clear();
  announce_deadline();
  emit(Finish{verdict});
}

}  // namespace taas::run
