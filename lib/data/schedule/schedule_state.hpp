#pragma once

#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "data/schedule/schedule.hpp"

namespace taas::data {

constexpr WorkerIndex kNobody = -1;

/// One task that the loop has not taken.
struct TaskState {
  WorkerIndex preferred = kNobody;
  bool pinned = false;
  bool here = false;                   ///< kept, or given up
  std::vector<Attempt> attempts;       ///< under way
  std::vector<WorkerIndex> returners;  ///< who cannot make it
  bool suspect = false;                ///< a worker was lost that had it
  int deaths = 0;                      ///< workers that were lost while they worked on it

  [[nodiscard]] bool returned_by(WorkerIndex worker) const;
};

/// Tasks that nobody has, by whom they are for: {pinned, preferred}.
using QueueKey = std::pair<bool, WorkerIndex>;

struct StreamState {
  std::uint64_t head = 0;                              ///< what the loop takes next
  std::deque<TaskState> tasks;                         ///< from head on
  std::map<QueueKey, std::set<std::uint64_t>> queues;  ///< no empty ones
  std::set<std::uint64_t> returned;                    ///< those of them that somebody has given back: in no queue
  std::map<WorkerIndex, WorkerIndex> homes;  ///< preferred worker of pinned tasks → who had the last of them
  int used = 0;                              ///< credits
  std::uint64_t served = 0;                  ///< when last, counted in assignments

  [[nodiscard]] TaskState& task(std::uint64_t number) { return tasks[number - head]; }
  [[nodiscard]] bool waits() const { return tasks.empty() || !tasks.front().here; }
};

struct AttemptState {
  WorkerIndex worker;
  Task task;
  Instant sent;
  std::optional<Instant> started;
};

/// A running mean that one outlier does not carry away.
class Mean {
 public:
  void add(Duration sample);
  [[nodiscard]] bool known() const { return known_; }
  [[nodiscard]] Duration value() const { return value_; }

 private:
  bool known_ = false;
  Duration value_{};
};

/// What the workers that answer can make together.
struct Pace {
  Duration fastest = Duration::max();  ///< for one task
  double a_second = 0;                 ///< tasks of all
  bool rested = false;                 ///< there is one that does not rest
};

struct WorkerState {
  bool up = false;
  bool was_up = false;
  std::optional<Instant> wanted;   ///< since when there are pinned tasks for it
  std::vector<Attempt> attempts;   ///< sent and not answered
  std::optional<Attempt> running;  ///< what it has begun last, as far as known
  Instant since{};                 ///< what it does now, it has done since then
  std::optional<Attempt> stale;    ///< withdrawn while it ran: the worker may still be busy with it
  Instant rests_until{};           ///< it has returned something: others are asked first
  Mean making;                     ///< from the beginning of a task to its arrival
  Mean starting;                   ///< from sending one to a worker that has nothing to the beginning
  std::uint64_t served = 0;        ///< when last, counted in assignments
};

/// All that Schedule knows. Its functions are in three files: what happens (schedule.cpp), who gets what
/// (schedule_assign.cpp), and copies of what is late (schedule_hedge.cpp).
struct Schedule::State {
  SchedulePolicy policy;
  std::vector<WorkerState> workers;
  std::map<StreamId, StreamState> streams;
  std::unordered_map<Attempt, AttemptState> attempts;
  int credits = std::numeric_limits<int>::max();
  int used = 0;
  Attempt last_attempt = 0;
  std::uint64_t assignments = 0;
  std::optional<Instant> alarm;
  std::optional<Instant> first_up;  ///< of all workers
  Instant now{};
  Pace together;  ///< at this event
  std::vector<ScheduleAction> actions;

  void on(const WorkerUp& event);
  void on(const WorkerDown& event);
  void on(const Submitted& event);
  void on(const Started& event);
  void on(const Arrived& event);
  void on(const Returned& event);
  void on(const Taken& event);
  void on(const StreamClosed& event);
  void on(const CreditsChanged& event) { credits = event.credits; }
  void on(const AlarmRang&) { alarm.reset(); }

  // What is known (schedule.cpp).
  WorkerState& worker(WorkerIndex index);
  [[nodiscard]] bool is_up(WorkerIndex index) const;
  [[nodiscard]] bool has_room(const WorkerState& worker) const;
  [[nodiscard]] int depth_of(const WorkerState& worker) const;
  StreamState* stream(StreamId id);
  /// The attempt is over, whatever became of it; nothing when it is not known.
  std::optional<AttemptState> end(Attempt attempt);
  void forget_attempts(WorkerIndex index);
  void withdraw(Attempt attempt);
  void count(StreamState& stream, int more);
  /// Everybody who is up has returned it, and nobody makes it.
  [[nodiscard]] bool is_hopeless(const TaskState& task) const;
  void give_up_or_queue(StreamState& stream, const Task& task);
  void give_up(StreamState& stream, const Task& task, int deaths);
  void give_up_hopeless(StreamId id, StreamState& stream);

  // Who gets what (schedule_assign.cpp).
  void enqueue(StreamState& stream, std::uint64_t number);
  void dequeue(StreamState& stream, std::uint64_t number);
  void assign_all();
  bool assign_one();
  bool assign_from(StreamId id, StreamState& stream);
  [[nodiscard]] bool anyone_has_room() const;
  [[nodiscard]] bool rests(const WorkerState& worker) const { return worker.rests_until > now; }
  [[nodiscard]] Pace pace() const;
  [[nodiscard]] bool is_too_slow(const WorkerState& worker, const StreamState& stream) const;
  [[nodiscard]] bool may_send(const StreamState& stream, std::uint64_t number) const;
  [[nodiscard]] WorkerIndex least_busy(const StreamState& stream, const TaskState* task) const;
  [[nodiscard]] WorkerIndex home(const StreamState& stream, WorkerIndex preferred) const;
  [[nodiscard]] std::optional<Instant> awaited_until(WorkerIndex preferred) const;
  WorkerIndex taker(const StreamState& stream, const QueueKey& key, WorkerIndex anyone);
  void send(WorkerIndex index, const Task& task);

  // Copies of what is late (schedule_hedge.cpp).
  void hedge_all();
  [[nodiscard]] std::vector<WorkerIndex> idle_workers() const;
  [[nodiscard]] std::vector<Attempt> late_attempts(WorkerIndex fastest);
  [[nodiscard]] Instant late_at(const WorkerState& busy, const WorkerState& idle) const;
  bool copy(const AttemptState& late, const std::vector<WorkerIndex>& idle);
  void wake_at(Instant at);
};

}  // namespace taas::data
