#include "data/schedule/hedging.hpp"

#include <algorithm>
#include <tuple>

namespace taas::data {

void Hedging::run() {
  for (auto idle = idle_workers(); !idle.empty(); idle = idle_workers()) {
    auto late = late_attempts(idle.front());
    bool copied =
        std::any_of(late.begin(), late.end(), [&](Attempt attempt) { return copy(attempts_.at(attempt), idle); });
    if (!copied) return;
  }
}

/// The fastest first.
std::vector<WorkerIndex> Hedging::idle_workers() const {
  std::vector<WorkerIndex> idle;
  for (WorkerIndex index = 0; index < workers_.size(); ++index) {
    if (workers_.is_up(index) && workers_[index].is_idle()) idle.push_back(index);
  }
  auto order = [this](WorkerIndex index) {
    const auto& worker = workers_[index];
    return std::tuple(worker.is_stale(), !worker.making().known(), worker.making().value());
  };
  std::stable_sort(idle.begin(), idle.end(), [&](WorkerIndex one, WorkerIndex two) { return order(one) < order(two); });
  return idle;
}

/// Of all workers that are late for the fastest idle one, which goes by the earliest alarm: what a loop waits for, then
/// the oldest.
std::vector<Attempt> Hedging::late_attempts(WorkerIndex fastest) {
  std::vector<std::tuple<bool, Instant, Attempt>> late;
  for (const auto& busy : workers_.all()) {
    if (!busy.up() || busy.is_idle()) continue;
    if (Instant at = workers_.late_at(busy, workers_[fastest]); at > decisions_.now()) {
      decisions_.wake_at(at);
      continue;
    }
    for (auto attempt : busy.attempts()) {
      const auto& state = attempts_.at(attempt);
      late.emplace_back(state.task.number != streams_.at(state.task.stream).head(), state.sent, attempt);
    }
  }
  std::sort(late.begin(), late.end());
  std::vector<Attempt> sorted;
  for (const auto& entry : late) sorted.push_back(std::get<Attempt>(entry));
  return sorted;
}

bool Hedging::copy(const AttemptState& late, const std::vector<WorkerIndex>& idle) {
  const auto& stream = streams_.at(late.task.stream);
  const auto& task = stream.task(late.task.number);
  if (task.deaths > 0) return false;  // it would end two workers at a time
  if (task.pinned || task.attempts.size() > 1 || !streams_.may_send(stream, late.task.number)) return false;
  for (auto index : idle) {
    if (task.returned_by(index)) continue;
    Instant at = workers_.late_at(workers_[late.worker], workers_[index]);
    if (at <= decisions_.now()) {
      attempts_.send(index, Task(late.task));
      return true;
    }
    decisions_.wake_at(at);
  }
  return false;
}

}  // namespace taas::data
