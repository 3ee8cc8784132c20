#include <csignal>

#include "run/events/words.hpp"
#include "run/supervisor/supervisor_state.hpp"
#include "run/verdict/verdict.hpp"

namespace taas::run {

using namespace std::chrono_literals;

namespace {

constexpr auto kKillNoticeAfter = 5s;
constexpr auto kGiveUpAfter = 30s;

}  // namespace

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

void Supervisor::State::on(const StoreReached& event) { record.store_reached(event); }

void Supervisor::State::on(const RankJoined& event) {
  if (!record.joined(event) || phase != Phase::kRunning) return;
  auto missing = record.not_joined_count();
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

/// One that comes after another failure is told at once, since the report may name that one only.
void Supervisor::State::on(const NodeLost& event) {
  bool ranks_may_live = phase == Phase::kRunning || phase == Phase::kStopping;
  if (event.generation != record.generation() || !ranks_may_live) return;
  record.lost(event, policy.node_of_rank);
  if (phase == Phase::kStopping) notify(describe(event));
  if (phase == Phase::kRunning && record.any_failed()) stop(SIGTERM);
  check_ranks();
}

/// All ranks have to stop, since the world changes: those of this node too are given the time to write a checkpoint.
void Supervisor::State::on(const NodeLeaves& event) {
  if (event.generation != record.generation() || phase != Phase::kRunning) return;
  departure = event;
  notify(describe(event) + ": ranks are told to write a checkpoint");
  if (!checkpoint_requested) emit(RequestStop{0});  // before the signal, whose handler looks for the wish
  stop(SIGTERM);
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

std::string Supervisor::State::names(const std::vector<Rank>& ranks) const {
  return name_ranks(ranks, policy.node_of_rank, policy.node_names);
}

}  // namespace taas::run
