#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "run/events/words.hpp"
#include "run/supervisor/supervisor_state.hpp"

namespace taas::run {

using namespace std::chrono_literals;

namespace {

constexpr auto kSameWish = 2s;

bool is_among(const std::vector<int>& signals, int signal) {
  return std::find(signals.begin(), signals.end(), signal) != signals.end();
}

}  // namespace

void Supervisor::State::on(const SignalReceived& event) {
  if (is_echo(event.signal)) return;
  if (ends_the_run(event.signal)) return on_stop_signal(event.signal);
  is_among(policy.preempt_signals, event.signal) ? request_stop(event.signal) : pass_on(event.signal);
}

void Supervisor::State::pass_on(int signal) {
  bool ranks_may_live = phase == Phase::kRunning || phase == Phase::kStopping;
  auto living = record.living();
  if (ranks_may_live && !living.empty()) emit(SignalRanks{record.generation(), living, signal});
}

/// Ranks that do not live yet are told when they do (start()).
void Supervisor::State::request_stop(int signal) {
  if (std::exchange(checkpoint_requested, true)) return;
  bool running = phase == Phase::kRunning;
  notify(fmt::format("{}: the run is to end soon; ranks are told to write a checkpoint", signal_name(signal)));
  if (running) emit(RequestStop{signal});
}

bool Supervisor::State::ends_the_run(int signal) const {
  return is_among(policy.stop_signals, signal) && !is_among(policy.preempt_signals, signal);
}

bool Supervisor::State::is_echo(int signal) {
  if (!ends_the_run(signal)) return false;
  if (policy.echo.repeats(signal, last_stop_signal, now - last_stop_at)) return true;
  last_stop_signal = signal;
  last_stop_at = now;
  return false;
}

void Supervisor::State::on_stop_signal(int signal) {
  switch (phase) {
    case Phase::kIdle:
    case Phase::kGathering:
      user_signal = signal;
      verdict = judge();
      return record.generation().value == 0 ? finish() : settle();
    case Phase::kRunning:
      user_signal = signal;
      notify(fmt::format("{}: stopping all ranks; once more kills them", signal_name(signal)));
      if (!checkpoint_requested) emit(RequestStop{0});  // before the signal, whose handler looks for the wish
      stop(signal);
      return check_ranks();
    case Phase::kStopping:
    case Phase::kSweeping:
      if (ranks_got_it_first(signal)) return take_over(signal);
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

/// A batch system signals every process of a job: ranks may have ended of it before it came here. That was no failure.
bool Supervisor::State::ranks_got_it_first(int signal) const {
  if (user_signal != 0 || !record.stopped_at() || now - *record.stopped_at() > kSameWish) return false;
  const auto& ranks = record.ranks();
  return std::all_of(ranks.begin(), ranks.end(), [signal](const RankRecord& rank) {
    bool by_it = !rank.spawn_failed && (rank.status.signal == signal || rank.status.code == 128 + signal);
    return !rank.failed() || rank.ended_after_stop || by_it;
  });
}

/// What began as the stop after a failure goes on as the user's.
void Supervisor::State::take_over(int signal) {
  user_signal = signal;
  if (!checkpoint_requested) emit(RequestStop{0});
  notify(fmt::format("{}: stopping all ranks; once more kills them", signal_name(signal)));
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
  notify(fmt::format("waiting for {} to join: {} of {} have", names(missing), world - missing.size(), world));
}

void Supervisor::State::tell_what_does_not_die(std::string_view then) {
  auto living = record.living();
  auto who = living.empty() ? "processes that ranks left behind" : names(living);
  notify(fmt::format("{} cannot be killed, which is so for a process that waits for a device or a network disk: {}",
                     who, then));
}

}  // namespace taas::run
