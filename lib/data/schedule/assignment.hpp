#pragma once

#include "data/schedule/attempts.hpp"

namespace taas::data {

/// Who gets what: one round after one event. Keeps nothing.
class Assignment {
 public:
  Assignment(const SchedulePolicy& policy, ScheduleDecisions& decisions, Streams& streams, Workers& workers,
             Attempts& attempts)
      : policy_(policy),
        decisions_(decisions),
        streams_(streams),
        workers_(workers),
        attempts_(attempts),
        pace_(policy, workers, decisions.now()) {}

  /// Sends all that can be sent now.
  void run();

 private:
  bool assign_one();
  bool assign_from(StreamId id, Stream& stream);
  [[nodiscard]] WorkerIndex taker(const Stream& stream, const QueueKey& key, WorkerIndex anyone);
  [[nodiscard]] WorkerIndex least_busy(const Stream& stream, const TaskState* task) const;
  [[nodiscard]] WorkerIndex home(const Stream& stream, WorkerIndex preferred) const;
  [[nodiscard]] std::optional<Instant> awaited_until(WorkerIndex preferred) const;

  const SchedulePolicy& policy_;
  ScheduleDecisions& decisions_;
  Streams& streams_;
  Workers& workers_;
  Attempts& attempts_;
  Pace pace_;
};

}  // namespace taas::data
