#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "data/client/alarm_clock.hpp"
#include "data/client/batch_sizes.hpp"
#include "data/client/client.hpp"
#include "data/client/client_links.hpp"
#include "data/client/client_stream.hpp"
#include "data/memory/memory_waiters.hpp"
#include "data/schedule/schedule.hpp"

namespace taas::data {

/// What a link needs to know before it takes memory for a batch.
struct Claim {
  bool wanted = false;
  Room room = Room::kWithinBudget;
};

enum class ClaimScope {
  kQuick,
  kThorough,  ///< also: is the loop waiting for something else that this worker has, behind this?
};

/// What a worker was sent and the loop still wants.
struct WantedAttempt {
  Task task;
  WorkerIndex worker = -1;
};

/// Where loops' streams, links to workers and the schedule meet, under one mutex: links tell what happens, the schedule
/// says what to do, and apply() does it.
struct Client::State {
  explicit State(ClientOptions chosen);

  const ClientOptions options;
  const pid_t process;
  std::optional<Handshake> handshake;
  SlotPool pool;
  std::shared_ptr<MemoryWaiters> bell;

  mutable std::mutex mutex;
  Schedule schedule;
  StreamId next_stream = 1;
  std::map<StreamId, std::shared_ptr<ClientStream>> streams;  ///< shared with those who wait in next()
  std::unordered_map<Attempt, WantedAttempt> attempts;
  std::map<std::string, Definition> definitions;
  BatchSizes sizes;
  Statistics totals;
  std::vector<std::string> remarks;
  std::optional<Outcome> arriving;  ///< what the schedule is asked about just now

  std::mutex workers_mutex;  ///< one change of the list at a time
  ClientLinks links;
  AlarmClock alarm;  ///< last: its thread begins when all else is there

  // For links, without the mutex.
  void up(WorkerIndex worker);
  void down(WorkerIndex worker, const std::string& why);
  void refused(WorkerIndex worker, const Error& why);
  std::vector<LinkOrder> take_orders(ClientLink& link);
  Claim claim(WorkerIndex worker, Attempt attempt, ClaimScope look) const;
  void started(WorkerIndex worker, Attempt attempt);
  void arrived(WorkerIndex worker, Attempt attempt, Outcome outcome, Duration took = {});
  void returned(WorkerIndex worker, Attempt attempt, const std::string& why);
  std::optional<Definition> definition(const std::string& digest);

  // With the mutex.
  void apply(const std::vector<ScheduleAction>& actions);
  void apply(const Assign& action);
  void apply(const Withdraw& action);
  void apply(const Keep& action);
  void apply(const Discard& action);
  void apply(const GiveUp& action);
  void apply(const SetAlarm& action) { alarm.set(action.at); }
  void keep(Task task, Outcome outcome);
  void adjust_credits();
  /// Whether a loop has asked for just this one. What comes next and was not asked for has to fit into the budget.
  [[nodiscard]] bool is_awaited(const Task& task) const;

  void stop();
};

}  // namespace taas::data
