#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <unordered_map>

#include "data/client/client.hpp"
#include "data/client/client_link.hpp"
#include "data/memory/memory_waiters.hpp"
#include "data/schedule/schedule.hpp"

namespace taas::data {

/// One pass over a loader, as the client sees it.
struct ClientStream {
  Definition definition;
  std::map<std::uint64_t, std::shared_ptr<const std::string>> payloads;  ///< of tasks that are not here yet
  std::set<std::uint64_t> sent;                                          ///< those of them that a worker had once
  std::map<std::uint64_t, Delivery> kept;
  std::map<std::uint64_t, std::string> returned;  ///< why a worker could not make it
  std::uint64_t submitted = 0;
  std::uint64_t taken = 0;
  bool waits = false;  ///< the loop has asked for the next delivery, and did not find it
  bool closed = false;
  Statistics statistics;
  std::condition_variable changed;

  void count_taken(const Delivery& delivery, Client::State& state);
};

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

/// All that a client knows, under one mutex. Links tell what happens; the schedule says what to do; apply() does it.
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
  std::map<std::string, std::size_t> sizes;  ///< of the last batch made of a definition
  std::size_t largest = 0;                   ///< of all batches so far
  Statistics totals;
  std::vector<std::string> remarks;

  std::mutex workers_mutex;  ///< one change of the list at a time
  std::vector<std::unique_ptr<ClientLink>> links;

  bool stopping = false;
  std::optional<Instant> alarm;
  std::condition_variable alarm_changed;
  std::thread alarm_thread;

  // For links, without the mutex.
  void up(WorkerIndex worker);
  void down(WorkerIndex worker, const std::string& why);
  void refused(WorkerIndex worker, const Error& why);
  std::vector<LinkOrder> take_orders(ClientLink& link);
  Claim claim(WorkerIndex worker, Attempt attempt, ClaimScope look) const;
  void started(WorkerIndex worker, Attempt attempt);
  void arrived(WorkerIndex worker, Attempt attempt, Delivery delivery, Duration took = {});
  void returned(WorkerIndex worker, Attempt attempt, const std::string& why);
  std::optional<Definition> definition(const std::string& digest);

  // With the mutex.
  void apply(const std::vector<ScheduleAction>& actions);
  void apply(const Assign& action);
  void apply(const Withdraw& action);
  void apply(const Keep& action);
  void apply(const Discard& action);
  void apply(const GiveUp& action);
  void apply(const SetAlarm& action);
  void keep(Task task, Delivery delivery);
  void adjust_credits();
  /// Whether a loop has asked for just this one. What comes next and was not asked for has to fit into the budget.
  [[nodiscard]] bool is_awaited(const Task& task) const;
  /// Why no worker will ever make a batch; empty: one may.
  [[nodiscard]] std::string hopeless() const;
  [[nodiscard]] int workers_up() const;

  std::optional<Delivery> arriving;  ///< what the schedule is asked about just now

  void ring_alarms();
  void stop();
};

}  // namespace taas::data
