#pragma once

#include <vector>

#include "data/schedule/attempts.hpp"

namespace taas::data {

/// Copies of what is late, for workers that could get nothing new: one round after one event. Keeps nothing.
class Hedging {
 public:
  Hedging(ScheduleDecisions& decisions, Streams& streams, Workers& workers, Attempts& attempts)
      : decisions_(decisions), streams_(streams), workers_(workers), attempts_(attempts) {}

  /// Sends all copies that are due, and asks for an alarm for those that will be.
  void run();

 private:
  [[nodiscard]] std::vector<WorkerIndex> idle_workers() const;
  [[nodiscard]] std::vector<Attempt> late_attempts(WorkerIndex fastest);
  bool copy(const AttemptState& late, const std::vector<WorkerIndex>& idle);

  ScheduleDecisions& decisions_;
  Streams& streams_;
  Workers& workers_;
  Attempts& attempts_;
};

}  // namespace taas::data
