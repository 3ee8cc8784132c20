#include <fmt/format.h>

#include <csignal>

#include "run/supervisor/supervisor_state.hpp"
#include "run/verdict/verdict.hpp"

namespace taas::run {

void Supervisor::State::on(const RunStarted&) {
  if (phase == Phase::kIdle) gather(Generation{0});
}

void Supervisor::State::gather(Generation generation) {
  phase = Phase::kGathering;
  record = GenerationRecord(generation, policy.world_size);
  deadlines.clear();
  emit(GatherNodes{generation});
}

void Supervisor::State::on(const NodesGathered& event) {
  if (phase != Phase::kGathering) return;
  policy.world_size = event.world_size;
  policy.node_of_rank = event.node_of_rank;
  policy.node_names = event.node_names;
  start();
}

void Supervisor::State::on(const GatherFailed& event) {
  if (phase != Phase::kGathering) return;
  verdict = judge_missing_nodes(record.generation(), event);
  emit(ReportFailure{verdict, false});
  record.generation().value == 0 ? finish() : settle();
}

/// Ranks that come after a request to write a checkpoint may not handle its signal yet.
void Supervisor::State::start() {
  phase = Phase::kRunning;
  record = GenerationRecord(record.generation(), policy.world_size);
  started_at = now;
  departure.reset();
  emit(StartGeneration{record.generation()});
  if (checkpoint_requested) emit(RequestStop{0});
}

/// The generation is over, its verdict known: the next one begins at once, or the run ends.
void Supervisor::State::conclude() {
  deadlines.clear();
  verdict = judge();
  bool failed = verdict.cause != Cause::kSuccess && verdict.cause != Cause::kStopped;
  bool again = failed && restarts();
  if (failed && !again) explain_no_restart();
  bool costs = again && costs_a_restart();
  if (costs) ++restarts_used;
  if (failed) emit(ReportFailure{verdict, again, costs ? restarts_used : 0});
  if (!again) return settle();
  gather(Generation{record.generation().value + 1});
}

Verdict Supervisor::State::judge() const {
  if (user_signal != 0) return judge_stop(record, user_signal, now);
  if (departure) return judge_departure(*departure);
  return record.any_failed() ? judge_failure(record, policy) : judge_success(record, now);
}

/// It raised an exception, and no rank had talked to the store: a program that fails so would only fail again. A
/// signal, or an exit code that the program chose, may have any reason.
bool Supervisor::State::failed_at_start() const {
  bool raised = verdict.cause == Cause::kException && policy.startup_needs_store;
  return raised && !record.store_reached() && verdict.at - started_at < policy.startup_window;
}

bool Supervisor::State::costs_a_restart() const {
  if (verdict.cause != Cause::kNodeLost) return true;
  for (const auto& lost : record.lost_nodes()) {
    if (!lost.replaceable) return true;
  }
  return false;
}

bool Supervisor::State::restarts() const {
  bool curable = verdict.cause != Cause::kExecFailed && !failed_at_start() && !hurried && !unkillable;
  return curable && (restarts_used < policy.max_restarts || !costs_a_restart());
}

void Supervisor::State::explain_no_restart() {
  bool would_have = verdict.cause != Cause::kExecFailed && restarts_used < policy.max_restarts;
  if (!would_have || !failed_at_start()) return;
  auto then = verdict.hint.empty() ? std::string("what fails while it starts fails again") : verdict.hint;
  verdict.hint = fmt::format("not restarted: no rank had reached the store; {}", then);
}

void Supervisor::State::settle() {
  phase = Phase::kSettling;
  hurried = false;
  deadlines.set(Timer::kSettleNotice, now + kSettleNoticeInterval);
  emit(SettleOutput{record.over() && !record.any_failed()});
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
