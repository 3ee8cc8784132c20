#include "run/supervisor/supervisor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "run/events/words.hpp"
#include "run/verdict/summary.hpp"
#include "run/verdict/verdict.hpp"

namespace taas::run {
namespace {

using namespace std::chrono_literals;

constexpr auto kSameWish = 2s;
constexpr auto kSettleNoticeInterval = 30s;
constexpr auto kOthersTimeOut = 1s;  // ranks of one collective do within milliseconds, NCCL's watchdogs within this
constexpr int kKeptAlike = 3;  // generations in a row that failed in the same way: the first two, and the last one

}  // namespace

Supervisor::Supervisor(Policy policy) : policy_(std::move(policy)), record_(Generation{0}, policy_.world_size) {}

std::vector<Action> Supervisor::handle(const Event& event) {
  if (phase_ == Phase::kFinished) return {};
  actions_.begin(instant_of(event));
  std::visit([this](const auto& happened) { on(happened); }, event);
  if (phase_ != Phase::kFinished) announce_deadline();
  return actions_.take();
}

void Supervisor::announce_deadline() {
  auto next = deadlines_.earliest();
  if (next == announced_) return;
  announced_ = next;
  next ? actions_.emit(SetDeadline{*next}) : actions_.emit(ClearDeadline{});
}

void Supervisor::on(const RunStarted&) {
  if (phase_ == Phase::kIdle) gather(Generation{0});
}

void Supervisor::gather(Generation generation) {
  phase_ = Phase::kGathering;
  record_ = GenerationRecord(generation, policy_.world_size);
  deadlines_.clear();
  actions_.emit(GatherNodes{generation});
}

void Supervisor::pause(Duration pause) {
  const Generation next{record_.generation().value + 1};
  if (pause == Duration{}) return gather(next);
  phase_ = Phase::kPausing;
  record_ = GenerationRecord(next, policy_.world_size);
  deadlines_.set(Timer::kRestart, actions_.now() + pause);
}

void Supervisor::on(const NodesGathered& event) {
  if (phase_ != Phase::kGathering) return;
  policy_.world_size = event.world_size;
  policy_.node_of_rank = event.node_of_rank;
  policy_.node_names = event.node_names;
  start();
}

void Supervisor::on(const GatherFailed& event) {
  if (phase_ != Phase::kGathering) return;
  verdict_ = judge_missing_nodes(record_.generation(), event);
  actions_.emit(ReportFailure{verdict_, false});
  record_.generation().value == 0 ? finish() : settle();
}

/// Ranks that come after a request to write a checkpoint may not handle its signal yet.
void Supervisor::start() {
  phase_ = Phase::kRunning;
  record_ = GenerationRecord(record_.generation(), policy_.world_size);
  restarts_.begin(actions_.now());
  departure_.reset();
  actions_.emit(StartGeneration{record_.generation(), std::exchange(folded_, Generation{-1})});
  if (wishes_.checkpoint_requested()) actions_.emit(RequestStop{0});
}

/// A rank whose start was still under way when the others were told to stop is told now.
void Supervisor::on(const RankSpawned& event) {
  bool living = record_.spawned(event);
  if (!living || phase_ != Phase::kStopping) return;
  actions_.emit(SignalRanks{event.generation, {event.rank}, record_.stop_signal()});
}

void Supervisor::on(const RankSpawnFailed& event) {
  if (!record_.spawn_failed(event)) return;
  if (phase_ == Phase::kRunning) stop(SIGTERM);
  check_ranks();
}

void Supervisor::on(const RankJoined& event) {
  if (!record_.joined(event) || phase_ != Phase::kRunning) return;
  auto missing = record_.not_joined_count();
  if (missing == 0) deadlines_.cancel(Timer::kJoinNotice);
  if (missing + 1 == record_.ranks().size() && missing > 0) {
    deadlines_.set(Timer::kJoinNotice, actions_.now() + policy_.join_notice_after);
  }
}

void Supervisor::on(const RankExited& event) {
  if (!record_.exited(event)) return;
  if (phase_ == Phase::kRunning) record_.any_failed() ? stop_failed(record_.rank(event.rank)) : await_stragglers();
  check_ranks();
}

/// After a collective's timeout the others may time out as well, so that the report can say who did not.
void Supervisor::stop_failed(const RankRecord& ended) {
  const bool waits = deadlines_.due(Timer::kTimeouts).has_value();
  const auto told = tells_of_others(ended);
  if (waits && (!ended.failed() || told != OfOthers::kNothing)) return;
  if (waits || told != OfOthers::kLate) return stop(SIGTERM);
  deadlines_.set(Timer::kTimeouts, actions_.now() + kOthersTimeOut);
}

/// Where it is not certain that the rank has failed, that is said and nothing is done.
void Supervisor::on(const RankLingers& event) {
  if (phase_ != Phase::kRunning || !record_.lingers(event) || event.state == Lingering::kGoesOn) return;
  actions_.notify(describe(event, policy_));
  await_exit(record_.rank(event.rank));
}

/// From when it was told: what it raised may have been printed together with what it had caught before.
void Supervisor::await_exit(const RankRecord& record) {
  if (!record.raised() || policy_.exit_timeout.count() == 0) return;
  auto due = record.lingering->at + policy_.exit_timeout;
  auto set = deadlines_.due(Timer::kExit);
  if (!set || due < *set) deadlines_.set(Timer::kExit, std::max(due, actions_.now()));
}

void Supervisor::on_exit_timeout() {
  if (phase_ != Phase::kRunning) return;
  for (Rank rank : record_.living()) {
    const auto& record = record_.rank(rank);
    if (!record.raised()) continue;
    if (actions_.now() < record.lingering->at + policy_.exit_timeout) {
      await_exit(record);
      continue;
    }
    record_.overdue(rank);
    actions_.notify(fmt::format("{} counts as failed: it has not ended within {:g} s of its exception (--exit-timeout)",
                                name_ranks({rank}, policy_.node_of_rank, policy_.node_names),
                                seconds(policy_.exit_timeout)));
  }
  if (record_.any_failed()) stop(SIGTERM);
}

/// Ranks may end at different times: those that have ended are to be the most.
void Supervisor::await_stragglers() {
  ended_well_at_ = actions_.now();
  auto left = record_.not_over_count();
  bool few = left > 0 && 2 * left <= record_.ranks().size();
  if (few) deadlines_.set(Timer::kStragglers, ended_well_at_ + policy_.straggler_notice_after);
}

void Supervisor::tell_who_has_not_ended() {
  if (phase_ != Phase::kRunning) return;
  actions_.notify(describe_stragglers(record_, policy_, actions_.now() - ended_well_at_));
  deadlines_.set(Timer::kStragglers, actions_.now() + policy_.straggler_notice_every);
}

/// One that comes after another failure is told at once, since the report may name that one only.
void Supervisor::on(const NodeLost& event) {
  if (event.generation != record_.generation() || !ranks_may_live()) return;
  record_.lost(event, policy_.node_of_rank);
  if (phase_ == Phase::kStopping) actions_.notify(describe(event));
  if (phase_ == Phase::kRunning && record_.any_failed()) stop(SIGTERM);
  check_ranks();
}

/// All ranks have to stop, since the world changes: those of this node too are given the time to write a checkpoint.
void Supervisor::on(const NodeLeaves& event) {
  if (event.generation != record_.generation() || phase_ != Phase::kRunning) return;
  if (record_.any_failed()) return stop(SIGTERM);  // no later than now
  departure_ = event;
  actions_.notify(describe(event) + ": ranks are told to write a checkpoint");
  if (!wishes_.checkpoint_requested()) actions_.emit(RequestStop{0});  // before the signal: its handler looks for it
  stop(SIGTERM);
  check_ranks();
}

void Supervisor::stop(int signal, bool sent) {
  phase_ = Phase::kStopping;
  deadlines_.cancel(Timer::kExit);
  deadlines_.cancel(Timer::kStragglers);
  deadlines_.cancel(Timer::kTimeouts);
  termination_.stop(signal, sent);
}

void Supervisor::check_ranks() {
  if (!ranks_may_live() || !record_.over()) return;
  if (phase_ == Phase::kRunning && record_.any_failed()) stop(SIGTERM);  // the second after a timeout is not over
  const bool in_peace = phase_ == Phase::kRunning;
  phase_ = Phase::kSweeping;
  deadlines_.cancel(Timer::kExit);
  deadlines_.cancel(Timer::kStragglers);
  in_peace ? termination_.await_leftovers() : termination_.sweep();
}

void Supervisor::on(const GenerationGone& event) {
  if (event.generation != record_.generation()) return;
  bool asked = phase_ == Phase::kSweeping || (phase_ == Phase::kStopping && record_.killed());
  if (!asked) return;
  record_.gone(actions_.now());
  conclude();
}

void Supervisor::on(const SignalReceived& event) {
  switch (wishes_.read(event.signal, actions_.now())) {
    case SignalWish::kNone:
      return;
    case SignalWish::kStop:
      return on_stop_signal(event);
    case SignalWish::kCheckpoint:
      return on_checkpoint_signal(event);
    case SignalWish::kPassOn:
      return pass_on(event.signal);
  }
}

void Supervisor::pass_on(int signal) {
  auto living = record_.living();
  const bool to_end = signal != SIGUSR1 && signal != SIGUSR2;
  if (ranks_may_live() && !living.empty()) actions_.emit(SignalRanks{record_.generation(), living, signal, to_end});
}

/// Ranks that do not live yet are told when they do (start()).
void Supervisor::on_checkpoint_signal(const SignalReceived& event) {
  if (!wishes_.begin_checkpoint()) return;
  auto text =
      fmt::format("{}: the run is to end soon; ranks are told to write a checkpoint", signal_name(event.signal));
  actions_.notify(text);
  if (phase_ == Phase::kRunning) actions_.emit(RequestStop{event.signal, event.reached_ranks});
}

void Supervisor::on_stop_signal(const SignalReceived& event) {
  const int signal = event.signal;
  if (phase_ == Phase::kRunning && record_.any_failed()) stop(SIGTERM);  // no later than now
  switch (phase_) {
    case Phase::kIdle:
    case Phase::kPausing:
    case Phase::kGathering:
      user_signal_ = signal;
      verdict_ = judge();
      return record_.generation().value == 0 ? finish() : settle();
    case Phase::kRunning:
      return stop_for_user(event);
    case Phase::kStopping:
    case Phase::kSweeping:
      if (ranks_got_it_first(signal)) return take_over(signal);
      if (!record_.stopped_at() && !std::exchange(hurried_, true)) return stop_leftovers(signal);
      hurried_ = true;
      if (!record_.killed()) actions_.notify(fmt::format("{}: killing what is left", signal_name(signal)));
      return termination_.kill();
    case Phase::kSettling:
      if (std::exchange(hurried_, true)) return finish();
      return actions_.notify(
          fmt::format("{}: output is being put on disk; once more gives it up", signal_name(signal)));
    case Phase::kFinished:
      return;
  }
}

void Supervisor::stop_for_user(const SignalReceived& event) {
  user_signal_ = event.signal;
  actions_.notify(fmt::format("{}: stopping all ranks; once more kills them", signal_name(event.signal)));
  if (!wishes_.checkpoint_requested()) actions_.emit(RequestStop{0});  // before the signal: its handler looks for it
  stop(event.signal, event.reached_ranks);
  check_ranks();
}

/// All ranks have ended well, and that stays so.
void Supervisor::stop_leftovers(int signal) {
  if (record_.killed()) return;
  actions_.notify(fmt::format("{}: what ranks left behind is told to end; once more kills it", signal_name(signal)));
  termination_.stop_leftovers();
}

/// What began as the stop after a failure goes on as the user's.
void Supervisor::take_over(int signal) {
  user_signal_ = signal;
  if (!wishes_.checkpoint_requested()) actions_.emit(RequestStop{0});
  actions_.notify(fmt::format("{}: stopping all ranks; once more kills them", signal_name(signal)));
}

/// A batch system signals every process of a job: ranks may have ended of it before it came here. That was no failure.
/// Where all ranks have ended well and only what they left behind is killed, there is nothing to take over.
bool Supervisor::ranks_got_it_first(int signal) const {
  if (phase_ == Phase::kSweeping && !record_.any_failed()) return false;
  if (user_signal_ != 0 || !record_.stopped_at() || actions_.now() - *record_.stopped_at() > kSameWish) return false;
  const auto& ranks = record_.ranks();
  return std::all_of(ranks.begin(), ranks.end(), [signal](const RankRecord& rank) {
    bool by_it = !rank.spawn_failed && (rank.status.signal == signal || rank.status.code == 128 + signal);
    return !rank.overdue && (!rank.failed() || rank.ended_after_stop || by_it);
  });
}

void Supervisor::on(const DeadlineReached& event) {
  announced_.reset();  // the agent's timer has run out
  while (auto timer = deadlines_.take_due(event.at)) on_timer(*timer);
}

void Supervisor::on_timer(Timer timer) {
  switch (timer) {
    case Timer::kJoinNotice:
      return tell_who_has_not_joined();
    case Timer::kExit:
      return on_exit_timeout();
    case Timer::kTimeouts:
      return stop(SIGTERM);
    case Timer::kStragglers:
      return tell_who_has_not_ended();
    case Timer::kShutdown:
      return termination_.on_shutdown_timeout();
    case Timer::kLeftover:
      return termination_.on_leftover_timeout();
    case Timer::kKillAgain:
      return termination_.on_kill_again();
    case Timer::kKillNotice:
      return termination_.on_kill_notice();
    case Timer::kGiveUp:
      termination_.on_give_up();
      return conclude();
    case Timer::kRestart:
      return gather(record_.generation());
    case Timer::kSettleNotice:
      deadlines_.set(Timer::kSettleNotice, actions_.now() + kSettleNoticeInterval);
      return actions_.notify("output is still being put on disk");
  }
}

void Supervisor::tell_who_has_not_joined() {
  auto missing = record_.not_joined();
  auto world = record_.ranks().size();
  auto names = name_ranks(missing, policy_.node_of_rank, policy_.node_names);
  actions_.notify(fmt::format("waiting for {} to join: {} of {} have", names, world - missing.size(), world));
}

/// The generation is over, its verdict known: the next one begins, at once or after a pause, or the run ends.
void Supervisor::conclude() {
  deadlines_.clear();
  verdict_ = judge();
  bool failed = verdict_.cause != Cause::kSuccess && verdict_.cause != Cause::kStopped;
  if (!failed) return settle();
  auto next = restarts_.decide(verdict_, record_, actions_.now(), !hurried_ && !termination_.gave_up());
  verdict_.hint = std::move(next.hint);
  if (next.alike >= kKeptAlike) folded_ = Generation{record_.generation().value - 1};
  actions_.emit(ReportFailure{verdict_, next.restarting, next.restart, next.pause, next.alike});
  next.restarting ? pause(next.pause) : settle();
}

Verdict Supervisor::judge() const {
  if (user_signal_ != 0) return judge_stop(record_, policy_, user_signal_, actions_.now());
  if (departure_) return judge_departure(*departure_);
  return record_.any_failed() ? judge_failure(record_, policy_) : judge_success(record_, actions_.now());
}

void Supervisor::settle() {
  phase_ = Phase::kSettling;
  hurried_ = false;
  deadlines_.set(Timer::kSettleNotice, actions_.now() + kSettleNoticeInterval);
  actions_.emit(SettleOutput{record_.over() && !record_.any_failed()});
}

void Supervisor::on(const OutputSettled& event) {
  if (phase_ != Phase::kSettling) return;
  if (!event.error.empty() && verdict_.cause == Cause::kSuccess)
    verdict_ = judge_output(verdict_, event.error);
  else if (!event.error.empty())
    actions_.notify(event.error);
  hurried_ = false;
  finish();
}

void Supervisor::finish() {
  bool gave_up_output = phase_ == Phase::kSettling && hurried_ && verdict_.cause == Cause::kSuccess;
  if (gave_up_output) verdict_ = judge_output(verdict_, "the run was stopped before all of it was there");
  phase_ = Phase::kFinished;
  deadlines_.clear();
  announce_deadline();
  actions_.emit(Finish{verdict_});
}

}  // namespace taas::run
