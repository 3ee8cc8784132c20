#pragma once

#include <optional>
#include <unordered_map>

#include "data/schedule/decisions.hpp"
#include "data/schedule/streams.hpp"
#include "data/schedule/workers.hpp"

namespace taas::data {

struct AttemptState {
  WorkerIndex worker;
  Task task;
  Instant sent;
  std::optional<Instant> started;
};

/// What is under way. An attempt is known to its worker and to its task too, and holds a credit of its stream: it
/// begins and ends in all of them at once.
class Attempts {
 public:
  /// All of them must outlive this.
  Attempts(ScheduleDecisions& decisions, Streams& streams, Workers& workers)
      : decisions_(decisions), streams_(streams), workers_(workers) {}

  void send(WorkerIndex worker, const Task& task);
  /// nullptr: it is over, or never was.
  [[nodiscard]] AttemptState* find(Attempt attempt);
  [[nodiscard]] const AttemptState& at(Attempt attempt) const { return attempts_.at(attempt); }
  /// It is over, whatever became of it; nothing when it is not known.
  std::optional<AttemptState> end(Attempt attempt);
  void withdraw(Attempt attempt);
  /// All attempts of this task.
  void withdraw_all(const TaskState& task);

 private:
  ScheduleDecisions& decisions_;
  Streams& streams_;
  Workers& workers_;
  std::unordered_map<Attempt, AttemptState> attempts_;
  Attempt last_ = 0;
};

}  // namespace taas::data
