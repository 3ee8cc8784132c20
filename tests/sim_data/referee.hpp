#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "data/schedule/schedule.hpp"

namespace taas::sim_data {

using namespace data;  // NOLINT: a simulation of that layer alone

constexpr WorkerIndex kNone = -1;

/// A Schedule, and a slow and simple account of what it knows, against which each of its actions is checked.
class Referee {
 public:
  Referee(SchedulePolicy policy, std::function<void(const std::string&)> complain);

  std::vector<ScheduleAction> handle(const ScheduleEvent& event);
  [[nodiscard]] std::optional<Instant> alarm() const { return alarm_; }
  [[nodiscard]] int copies() const { return copies_; }
  [[nodiscard]] int beyond_credits() const { return beyond_credits_; }

 private:
  struct Work {
    WorkerIndex preferred;
    bool pinned;
    bool here = false;
    std::set<Attempt> live;
    std::set<WorkerIndex> returners;
  };
  struct Stream {
    std::uint64_t head = 0;
    std::deque<Work> work;
    std::set<std::uint64_t> unassigned;
    std::map<WorkerIndex, WorkerIndex>
        homes;                   ///< preferred worker of pinned tasks → who had the last of them and is up
    std::set<WorkerIndex> lost;  ///< workers that were down at some time
  };
  struct Sent {
    WorkerIndex worker;
    Task task;
  };

  // What the event makes of the account, before the schedule is asked.
  void on(const WorkerUp& event);
  void on(const WorkerDown& event);
  void on(const Submitted& event);
  void on(const Started&) {}
  void on(const Arrived& event);
  void on(const Returned& event);
  void on(const Taken& event);
  void on(const StreamClosed& event);
  void on(const CreditsChanged& event) { credits_ = event.credits; }
  void on(const AlarmRang&) { alarm_.reset(); }

  // Whether what it decided is sound.
  void check(const Assign& action);
  void check(const Withdraw& action);
  void check(const Keep& action);
  void check(const Discard& action);
  void check(const GiveUp& action);
  void check(const SetAlarm& action);
  [[nodiscard]] bool may_host(const Stream& stream, WorkerIndex preferred, WorkerIndex worker) const;
  void check_home(Stream& stream, const Work& work, WorkerIndex worker);
  void check_order(Stream& stream, const Assign& action);
  void check_nothing_missed();
  [[nodiscard]] std::vector<WorkerIndex> takers(const Stream& stream, const Work& work) const;
  void check_answered(const ScheduleEvent& event);

  void lose(WorkerIndex worker);
  void drop(Attempt attempt);
  [[nodiscard]] Work* find(const Task& task);
  [[nodiscard]] int tasks_of(WorkerIndex worker) const;
  [[nodiscard]] bool everyone_returned(const Work& work) const;
  void require(bool holds, const std::string& what);

  SchedulePolicy policy_;
  Schedule schedule_;
  std::function<void(const std::string&)> complain_;
  std::set<WorkerIndex> up_;
  std::map<StreamId, Stream> streams_;
  std::map<Attempt, Sent> sent_;
  Attempt newest_ = 0;
  std::optional<Task> expected_;  ///< the arrived one is to be kept
  int answers_ = 0;               ///< to the arrived one
  int used_ = 0;
  int credits_ = 1 << 30;
  int copies_ = 0;
  int beyond_credits_ = 0;
  Instant now_{};
  std::optional<Instant> alarm_;
};

}  // namespace taas::sim_data
