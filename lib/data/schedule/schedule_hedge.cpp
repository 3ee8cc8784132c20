#include <algorithm>
#include <tuple>

#include "data/schedule/schedule_state.hpp"

namespace taas::data {

/// Whoever is idle now could get nothing new. What is late on another worker is made once more.
void Schedule::State::hedge_all() {
  for (auto idle = idle_workers(); !idle.empty(); idle = idle_workers()) {
    auto late = late_attempts(idle.front());
    bool copied =
        std::any_of(late.begin(), late.end(), [&](Attempt attempt) { return copy(attempts.at(attempt), idle); });
    if (!copied) return;
  }
}

/// The fastest first.
std::vector<WorkerIndex> Schedule::State::idle_workers() const {
  std::vector<WorkerIndex> idle;
  for (WorkerIndex index = 0; index < static_cast<WorkerIndex>(workers.size()); ++index) {
    if (is_up(index) && workers[static_cast<std::size_t>(index)].attempts.empty()) idle.push_back(index);
  }
  auto order = [this](WorkerIndex index) {
    const auto& worker = workers[static_cast<std::size_t>(index)];
    return std::tuple(worker.stale.has_value(), !worker.making.known(), worker.making.value());
  };
  std::stable_sort(idle.begin(), idle.end(), [&](WorkerIndex one, WorkerIndex two) { return order(one) < order(two); });
  return idle;
}

/// What a busy worker has is late from then on, as the idle one sees it.
Instant Schedule::State::late_at(const WorkerState& busy, const WorkerState& idle) const {
  constexpr int kUnknown = 10;  // times hedge_after, when the idle worker has never made one
  if (!idle.making.known()) return busy.since + policy.hedge_after * kUnknown;
  Duration usual = idle.making.value();
  if (!busy.running) usual += busy.starting.value();
  auto patience = std::chrono::duration_cast<Duration>(usual * policy.hedge_factor);
  return busy.since + std::max(policy.hedge_after, patience);
}

/// Of all workers that are late for the fastest idle one, which goes by the earliest alarm: what a loop waits for, then
/// the oldest.
std::vector<Attempt> Schedule::State::late_attempts(WorkerIndex fastest) {
  std::vector<std::tuple<bool, Instant, Attempt>> late;
  for (const auto& busy : workers) {
    if (!busy.up || busy.attempts.empty()) continue;
    if (Instant at = late_at(busy, worker(fastest)); at > now) {
      wake_at(at);
      continue;
    }
    for (auto attempt : busy.attempts) {
      const auto& state = attempts.at(attempt);
      late.emplace_back(state.task.number != streams.at(state.task.stream).head, state.sent, attempt);
    }
  }
  std::sort(late.begin(), late.end());
  std::vector<Attempt> sorted;
  for (const auto& entry : late) sorted.push_back(std::get<Attempt>(entry));
  return sorted;
}

bool Schedule::State::copy(const AttemptState& late, const std::vector<WorkerIndex>& idle) {
  auto& stream = streams.at(late.task.stream);
  const auto& task = stream.task(late.task.number);
  if (task.deaths > 0) return false;  // it would end two workers at a time
  if (task.pinned || task.attempts.size() > 1 || !may_send(stream, late.task.number)) return false;
  for (auto index : idle) {
    if (task.returned_by(index)) continue;
    Instant at = late_at(worker(late.worker), worker(index));
    if (at <= now) {
      send(index, Task(late.task));
      return true;
    }
    wake_at(at);
  }
  return false;
}

/// An alarm that comes too early does no harm.
void Schedule::State::wake_at(Instant at) {
  if (alarm && *alarm <= at) return;
  alarm = at;
  actions.push_back(SetAlarm{at});
}

}  // namespace taas::data
