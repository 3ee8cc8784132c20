#pragma once

#include <optional>
#include <vector>

#include "data/schedule/schedule.hpp"

namespace taas::data {

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

/// One data worker: what it has been sent and not answered, what it does now, and how long it takes.
class Worker {
 public:
  void come_up(Instant now);
  void go_down() { up_ = false; }
  /// There are pinned tasks for it.
  void want(Instant now);
  void send(Attempt attempt, Instant now);
  /// It says that it has begun.
  void begin(Attempt attempt, Instant now);
  /// It has answered this one, whether or not anybody still wanted it.
  void answer(Attempt attempt);
  /// The attempt is none of its any more.
  void end(Attempt attempt, Instant now);
  /// After end(): it has made the batch, and says that this took so long, where it did not say when it began.
  void finish(std::optional<Instant> started, Duration took, Instant now);
  /// After end(): it cannot do the task. Others are asked first for a while.
  void give_back(Instant now);
  /// After end(): it had begun and need not go on, but may still be busy with it. One that is stopped in the middle of
  /// a task needs at least as long as it has needed so far.
  void withdraw(Attempt attempt, Instant started, Instant now);
  void forget_stale() { stale_.reset(); }

  [[nodiscard]] bool up() const { return up_; }
  [[nodiscard]] bool was_up() const { return was_up_; }
  [[nodiscard]] std::optional<Instant> wanted() const { return wanted_; }
  [[nodiscard]] const std::vector<Attempt>& attempts() const { return attempts_; }
  [[nodiscard]] bool is_idle() const { return attempts_.empty(); }
  /// What it has begun last, as far as known.
  [[nodiscard]] std::optional<Attempt> running() const { return running_; }
  /// What it does now, it has done since then.
  [[nodiscard]] Instant since() const { return since_; }
  /// It may still be busy with something that was withdrawn while it ran.
  [[nodiscard]] bool is_stale() const { return stale_.has_value(); }
  [[nodiscard]] bool rests(Instant now) const { return rests_until_ > now; }
  [[nodiscard]] Instant rests_until() const { return rests_until_; }
  /// From the beginning of a task to its arrival.
  [[nodiscard]] const Mean& making() const { return making_; }
  /// From sending a task to a worker that has nothing to its beginning.
  [[nodiscard]] const Mean& starting() const { return starting_; }
  /// The last attempt that it was sent; 0: none.
  [[nodiscard]] Attempt served() const { return served_; }

 private:
  bool up_ = false;
  bool was_up_ = false;
  std::optional<Instant> wanted_;
  std::vector<Attempt> attempts_;
  std::optional<Attempt> running_;
  Instant since_{};
  std::optional<Attempt> stale_;
  Instant rests_until_{};
  Mean making_;
  Mean starting_;
  Attempt served_ = 0;
};

/// All data workers that were ever heard of, by index; and what follows from how fast they are.
class Workers {
 public:
  /// `policy` must outlive this.
  explicit Workers(const SchedulePolicy& policy) : policy_(policy) {}

  /// One that was not heard of before is made.
  Worker& at(WorkerIndex index);
  [[nodiscard]] const Worker& operator[](WorkerIndex index) const { return workers_[static_cast<std::size_t>(index)]; }
  [[nodiscard]] WorkerIndex size() const { return static_cast<WorkerIndex>(workers_.size()); }
  [[nodiscard]] const std::vector<Worker>& all() const { return workers_; }

  void come_up(WorkerIndex index, Instant now);
  /// Since when there is any worker.
  [[nodiscard]] std::optional<Instant> first_up() const { return first_up_; }
  [[nodiscard]] bool is_up(WorkerIndex index) const;
  [[nodiscard]] bool has_room(const Worker& worker) const;
  [[nodiscard]] bool anyone_has_room() const;
  /// What a busy worker has is late from then on, as the idle one sees it.
  [[nodiscard]] Instant late_at(const Worker& busy, const Worker& idle) const;
  /// It is not late, as it sees itself.
  [[nodiscard]] bool answers(const Worker& worker, Instant now) const;

 private:
  [[nodiscard]] int depth_of(const Worker& worker) const;

  const SchedulePolicy& policy_;
  std::vector<Worker> workers_;
  std::optional<Instant> first_up_;
};

/// What the workers that answer can make together, at one moment.
class Pace {
 public:
  Pace(const SchedulePolicy& policy, const Workers& workers, Instant now);

  /// There is one that does not rest.
  [[nodiscard]] bool anyone_rested() const { return rested_; }
  /// All others would wait for it: they make the `window` of tasks that may come after its own before it is done with
  /// that. Every now and then it gets one even so, to see whether it has become faster.
  [[nodiscard]] bool is_too_slow(const Worker& worker, std::size_t window) const;

 private:
  const SchedulePolicy& policy_;
  const Workers& workers_;
  Instant now_;
  Duration fastest_ = Duration::max();  // for one task
  double a_second_ = 0;                 // tasks of all
  bool rested_ = false;
};

}  // namespace taas::data
