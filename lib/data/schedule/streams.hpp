#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <set>
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

/// The tasks of one stream from the one on that its loop takes next. Those that nobody has are queued.
class Stream {
 public:
  using Numbers = std::set<std::uint64_t>;

  explicit Stream(std::uint64_t first) : head_(first) {}

  [[nodiscard]] std::uint64_t head() const { return head_; }
  [[nodiscard]] std::size_t size() const { return tasks_.size(); }
  [[nodiscard]] TaskState& task(std::uint64_t number) { return tasks_[number - head_]; }
  [[nodiscard]] const TaskState& task(std::uint64_t number) const { return tasks_[number - head_]; }
  [[nodiscard]] const std::deque<TaskState>& tasks() const { return tasks_; }
  /// The loop can take nothing.
  [[nodiscard]] bool waits() const { return tasks_.empty() || !tasks_.front().here; }

  /// The next number; it is queued.
  void add(WorkerIndex preferred, bool pinned);
  void remove_first();

  void enqueue(std::uint64_t number);
  void dequeue(std::uint64_t number);
  [[nodiscard]] bool has_queued() const { return !queues_.empty() || !returned_.empty(); }
  /// Of tasks that nobody has given back; none is empty.
  [[nodiscard]] const std::map<QueueKey, Numbers>& queues() const { return queues_; }
  /// Tasks that somebody has given back.
  [[nodiscard]] const Numbers& returned() const { return returned_; }

  /// Who had the last of the pinned tasks of this worker; kNobody: there was none.
  [[nodiscard]] WorkerIndex home_of(WorkerIndex preferred) const;
  void set_home(WorkerIndex preferred, WorkerIndex host) { homes_[preferred] = host; }
  /// How many workers' pinned tasks each of so many workers has.
  [[nodiscard]] std::vector<int> count_hosted(std::size_t workers) const;

  /// How many credits it holds: attempts under way, and batches that are here.
  [[nodiscard]] int used() const { return used_; }
  /// When it was served last, counted in attempts.
  [[nodiscard]] std::uint64_t served() const { return served_; }
  void note_served(std::uint64_t at) { served_ = at; }

 private:
  friend class Streams;

  std::uint64_t head_;
  std::deque<TaskState> tasks_;
  std::map<QueueKey, Numbers> queues_;
  Numbers returned_;
  std::map<WorkerIndex, WorkerIndex> homes_;
  int used_ = 0;
  std::uint64_t served_ = 0;
};

/// Whose turn it is: a loop that waits comes first; then who holds the fewest credits; then who was served longest ago.
struct Turn {
  bool can_wait;
  int used;
  std::uint64_t served;
  StreamId stream;

  friend auto operator<=>(const Turn&, const Turn&) = default;
};

/// All open streams, and the credits that they share.
class Streams {
 public:
  /// The stream, which its first task opens.
  Stream& open(const Task& first) { return streams_.try_emplace(first.stream, first.number).first->second; }
  [[nodiscard]] Stream& at(StreamId id) { return streams_.at(id); }
  [[nodiscard]] const Stream& at(StreamId id) const { return streams_.at(id); }
  [[nodiscard]] Stream* find(StreamId id);
  [[nodiscard]] TaskState& task(const Task& task) { return at(task.stream).task(task.number); }
  void close(StreamId id);
  [[nodiscard]] std::map<StreamId, Stream>& all() { return streams_; }

  void set_credits(int credits) { credits_ = credits; }
  /// This stream holds so many credits more.
  void use(Stream& stream, int more);
  /// What a loop takes next may be sent beyond the credits.
  [[nodiscard]] bool may_send(const Stream& stream, std::uint64_t number) const {
    return used_ < credits_ || number == stream.head();
  }
  /// How many tasks of the stream may be under way or wait.
  [[nodiscard]] std::size_t window(const Stream& stream) const;
  /// Of those that have something queued.
  [[nodiscard]] std::vector<Turn> turns() const;

 private:
  std::map<StreamId, Stream> streams_;
  int credits_ = std::numeric_limits<int>::max();
  int used_ = 0;
};

}  // namespace taas::data
