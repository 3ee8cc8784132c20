#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "data/schedule/schedule.hpp"

// What tests of the Schedule drive it with, and what it decides in few words.
namespace taas::data::schedule_bench {

/// Drives a Schedule and writes down what it decides: "0>2 #5" is task 2 to worker 0 as attempt 5. Tasks take no time
/// here unless a test says so: no more than `depth` are sent ahead.
struct Bench {
  explicit Bench(SchedulePolicy policy = {}, int workers = 0) : schedule(policy) {
    for (int worker = 0; worker < workers; ++worker) feed(WorkerUp{worker, now});
  }

  std::string feed(const ScheduleEvent& event) {
    std::vector<std::string> words;
    for (const auto& action : schedule.handle(event)) {
      if (auto word = std::visit([this](const auto& decided) { return tell(decided); }, action); !word.empty()) {
        words.push_back(word);
      }
    }
    return fmt::format("{}", fmt::join(words, ", "));
  }
  std::string submit(StreamId stream, std::uint64_t number, WorkerIndex preferred = -1, bool pinned = false) {
    return feed(Submitted{{stream, number}, preferred, pinned, now});
  }
  std::string up(WorkerIndex worker) { return feed(WorkerUp{worker, now}); }
  std::string down(WorkerIndex worker) { return feed(WorkerDown{worker, now}); }
  std::string starts(WorkerIndex worker, Attempt attempt) { return feed(Started{worker, attempt, now}); }
  std::string arrives(WorkerIndex worker, Attempt attempt) { return feed(Arrived{worker, attempt, now}); }
  std::string returns(WorkerIndex worker, Attempt attempt) { return feed(Returned{worker, attempt, now}); }
  std::string take(StreamId stream, std::uint64_t number) { return feed(Taken{{stream, number}, now}); }
  std::string close(StreamId stream) { return feed(StreamClosed{stream, now}); }
  std::string credits(int count) { return feed(CreditsChanged{count, now}); }
  /// Time passes; the alarm rings when it is due.
  std::string wait(Duration length) {
    now += length;
    return alarm <= now ? feed(AlarmRang{now}) : "";
  }

  std::string tell(const Assign& action) {
    return fmt::format("{}>{}{} #{}", action.worker, action.task.stream > 1 ? "s2:" : "", action.task.number,
                       action.attempt);
  }
  std::string tell(const Withdraw& action) { return fmt::format("stop #{}", action.attempt); }
  std::string tell(const Keep& action) { return fmt::format("keep {}", action.task.number); }
  std::string tell(const Discard& action) { return fmt::format("discard #{}", action.attempt); }
  std::string tell(const GiveUp& action) { return fmt::format("give up {}", action.task.number); }
  std::string tell(const SetAlarm& action) {
    alarm = action.at;
    return "";
  }

  Schedule schedule;
  Instant now{std::chrono::seconds(1000)};
  Instant alarm = Instant::max();
};

/// The worker has made so many tasks, each of which took it so long. Attempts count on from `first`.
inline void teach(Bench& bench, WorkerIndex worker, Attempt attempt, std::uint64_t number, Duration length) {
  bench.starts(worker, attempt);
  bench.now += length;
  bench.arrives(worker, attempt);
  bench.take(1, number);
}

}  // namespace taas::data::schedule_bench
