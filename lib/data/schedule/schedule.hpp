#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "base/clock.hpp"

namespace taas::data {

/// A data worker as the client numbers it: its place in the list of workers, kept while it is gone.
using WorkerIndex = int;
/// One pass of a loop over one loader: an epoch.
using StreamId = std::uint64_t;

/// One batch that is to be made: the `number`th of a stream, counted from 0 in the sampler's order.
struct Task {
  StreamId stream = 0;
  std::uint64_t number = 0;

  friend bool operator==(const Task&, const Task&) = default;
  friend auto operator<=>(const Task&, const Task&) = default;
};

/// One sending of a task to one worker. Never used twice: what arrives for an attempt that is not known any more is
/// late.
using Attempt = std::uint64_t;

struct SchedulePolicy {
  int depth = 2;  ///< tasks that a worker has at a time: one that it makes, and the next
  Duration ahead = std::chrono::milliseconds(2);         ///< more of them where tasks are short: work for so long
  int most = 16;                                         ///< but never more than so many
  Duration hedge_after = std::chrono::milliseconds(50);  ///< at least so long a task is waited for before it is copied
  double hedge_factor = 2.0;  ///< and at least so many times what the idle worker needs for one
  int most_deaths = 3;        ///< of workers while they work on one task: then it is what ends them
  WorkerIndex first = 0;  ///< of equals this one comes first. The rank: so that ranks in step do not all ask the same
};

// What happens.

struct WorkerUp {
  WorkerIndex worker;
  Instant at;
};
/// Whatever it had is lost.
struct WorkerDown {
  WorkerIndex worker;
  Instant at;
};
/// The sampler has drawn one more batch of this stream. Numbers come in order, without gaps; the first one opens it.
struct Submitted {
  Task task;
  WorkerIndex preferred =
      -1;               ///< who has something for it (a prepared batch, an iterable dataset's position); -1: nobody
  bool pinned = false;  ///< `preferred` has what only it has: only when that is gone it goes to another worker
  Instant at;
};
/// The worker has begun to work on it. It need not say so for what is made at once.
struct Started {
  WorkerIndex worker;
  Attempt attempt;
  Instant at;
};
/// All of it is here: a batch, or the dataset's exception.
struct Arrived {
  WorkerIndex worker;
  Attempt attempt;
  Instant at;
  Duration took{};  ///< as the worker says; used where it did not say when it began
};
/// The worker gives it back: it cannot do it (out of memory, a definition that cannot be loaded there).
struct Returned {
  WorkerIndex worker;
  Attempt attempt;
  Instant at;
};
/// The loop has taken the stream's next batch: its place is free again.
struct Taken {
  Task task;
  Instant at;
};
/// The loop ended, early perhaps: nothing of the stream is wanted any more.
struct StreamClosed {
  StreamId stream;
  Instant at;
};
/// How many batches may be under way or waiting for the loop, over all streams. Each open stream may always have one.
struct CreditsChanged {
  int credits;
  Instant at;
};
/// The instant of the last SetAlarm has come.
struct AlarmRang {
  Instant at;
};

using ScheduleEvent = std::variant<WorkerUp, WorkerDown, Submitted, Started, Arrived, Returned, Taken, StreamClosed,
                                   CreditsChanged, AlarmRang>;

// What to do about it.

struct Assign {
  WorkerIndex worker;
  Attempt attempt;
  Task task;
  bool told = false;  ///< a worker was lost that had it: the next one says that it begins before it does
};
/// The worker need not go on with it; what arrives of it is thrown away.
struct Withdraw {
  WorkerIndex worker;
  Attempt attempt;
};
/// What has just arrived is the first copy: keep it until the loop has taken all before it.
struct Keep {
  Attempt attempt;
  Task task;
};
/// What has just arrived is a second copy, or of a stream that is closed.
struct Discard {
  Attempt attempt;
};
/// Nobody can make it: every worker that is up has returned it, or so many have ended while they worked on it that they
/// would all end. Counts as here until the loop has taken it.
struct GiveUp {
  Task task;
  int deaths = 0;  ///< 0: it was returned
};
/// Replaces the last one.
struct SetAlarm {
  Instant at;
};

using ScheduleAction = std::variant<Assign, Withdraw, Keep, Discard, GiveUp, SetAlarm>;

/// Who makes which batch: tasks go to whoever is free, in the sampler's order; what a lost worker had goes to others; a
/// batch that is late is made a second time by an idle worker, and the first copy counts. Every task is kept or given
/// up exactly once. Pinned tasks are not copied: they wait until their worker is done or down. The credits bound
/// attempts under way and batches that wait. Only what a loop takes next may be sent beyond them. Pure.
class Schedule {
 public:
  explicit Schedule(SchedulePolicy policy);
  ~Schedule();
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  std::vector<ScheduleAction> handle(const ScheduleEvent& event);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace taas::data
