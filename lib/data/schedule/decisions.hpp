#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "data/schedule/schedule.hpp"

namespace taas::data {

/// What the Schedule decides on one event, and when that is. Keeps the alarm that was set last.
class ScheduleDecisions {
 public:
  void begin(Instant now) { now_ = now; }
  [[nodiscard]] Instant now() const { return now_; }
  void emit(const ScheduleAction& action) { actions_.push_back(action); }
  [[nodiscard]] std::vector<ScheduleAction> take() { return std::exchange(actions_, {}); }

  /// There will be an event at this instant, or before: an alarm that comes too early does no harm.
  void wake_at(Instant at) {
    if (alarm_ && *alarm_ <= at) return;
    alarm_ = at;
    emit(SetAlarm{at});
  }
  void alarm_rang() { alarm_.reset(); }

 private:
  Instant now_{};
  std::vector<ScheduleAction> actions_;
  std::optional<Instant> alarm_;
};

}  // namespace taas::data
