#include "data/schedule/schedule.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "catch.hpp"

namespace schedule_test {

using namespace taas;
using namespace taas::data;
using namespace std::chrono_literals;

namespace {

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
  Instant now{1000s};
  Instant alarm = Instant::max();
};

/// The worker has made so many tasks, each of which took it so long. Attempts count on from `first`.
void teach(Bench& bench, WorkerIndex worker, Attempt attempt, std::uint64_t number, Duration length) {
  bench.starts(worker, attempt);
  bench.now += length;
  bench.arrives(worker, attempt);
  bench.take(1, number);
}

}  // namespace

TEST_CASE("tasks go in order to whoever has the fewest") {
  Bench bench({.most = 2}, 2);
  CHECK(bench.submit(1, 0) == "0>0 #1");
  CHECK(bench.submit(1, 1) == "1>1 #2");
  CHECK(bench.submit(1, 2) == "0>2 #3");
  CHECK(bench.submit(1, 3) == "1>3 #4");
  CHECK(bench.submit(1, 4) == "");
  CHECK(bench.submit(1, 5) == "");
  CHECK(bench.arrives(1, 2) == "keep 1, 1>4 #5");
  CHECK(bench.arrives(1, 4) == "keep 3, 1>5 #6");
}

TEST_CASE("ranks in step begin with different workers") {
  Bench bench({.most = 2, .first = 1}, 3);
  CHECK(bench.submit(1, 0) == "1>0 #1");
  CHECK(bench.submit(1, 1) == "2>1 #2");
  CHECK(bench.submit(1, 2) == "0>2 #3");
}

TEST_CASE("a new worker gets what waits, and what a lost worker had goes to others, lowest first") {
  Bench bench({.depth = 1, .most = 1}, 1);
  CHECK(bench.submit(1, 0) == "0>0 #1");
  CHECK(bench.submit(1, 1) == "");
  CHECK(bench.up(1) == "1>1 #2");
  CHECK(bench.submit(1, 2) == "");
  CHECK(bench.down(0) == "");
  CHECK(bench.arrives(1, 2) == "keep 1, 1>0 #3");
  CHECK(bench.arrives(0, 1) == "discard #1");
  CHECK(bench.up(0) == "0>2 #4");
}

TEST_CASE("a worker that comes up twice has lost what it had") {
  Bench bench({.most = 2}, 1);
  CHECK(bench.submit(1, 0) == "0>0 #1");
  CHECK(bench.up(0) == "0>0 #2");
  CHECK(bench.arrives(0, 1) == "discard #1");
  CHECK(bench.arrives(0, 2) == "keep 0");
}

TEST_CASE("a preferred worker is waited for, unless somebody has nothing to do") {
  Bench bench({.most = 2}, 2);
  CHECK(bench.submit(1, 0, 1) == "1>0 #1");
  CHECK(bench.submit(1, 1, 1) == "1>1 #2");
  CHECK(bench.submit(1, 2, 1) == "0>2 #3");
  CHECK(bench.submit(1, 3, 1) == "");
  CHECK(bench.submit(1, 4) == "0>4 #4");
  CHECK(bench.arrives(1, 1) == "keep 0, 1>3 #5");
}

TEST_CASE("who prefers a worker that is gone takes any") {
  Bench bench({.most = 2}, 2);
  bench.down(1);
  CHECK(bench.submit(1, 0, 1) == "0>0 #1");
  CHECK(bench.submit(1, 1, 7) == "0>1 #2");
}

TEST_CASE("pinned tasks wait for their worker") {
  Bench bench({.most = 2}, 2);
  CHECK(bench.submit(1, 0, 1, true) == "1>0 #1");
  CHECK(bench.submit(1, 1, 1, true) == "1>1 #2");
  CHECK(bench.submit(1, 2, 1, true) == "");
  CHECK(bench.submit(1, 3, 0, true) == "0>3 #3");
  CHECK(bench.wait(1h) == "");
  CHECK(bench.arrives(1, 1) == "keep 0, 1>2 #4");
}

TEST_CASE("pinned tasks wait for a worker that starts together with the first one") {
  Bench bench;
  bench.submit(1, 0, 0, true);
  bench.submit(1, 1, 1, true);
  CHECK(bench.up(0) == "0>0 #1");
  CHECK(bench.wait(900ms).empty());
  CHECK(bench.up(1) == "1>1 #2");
}

TEST_CASE("pinned tasks wait once, for a second, for a worker that never comes") {
  Bench bench;
  bench.submit(1, 0, 1, true);
  CHECK(bench.up(0).empty());
  CHECK(bench.wait(1s) == "0>0 #1");
  CHECK(bench.submit(2, 0, 1, true) == "0>s2:0 #2");
}

TEST_CASE("pinned tasks of a lost worker stay together, also when it comes back") {
  Bench bench({.most = 2}, 3);
  bench.submit(1, 0, 1, true);
  bench.submit(1, 1, 1, true);
  CHECK(bench.down(1) == "0>0 #3, 0>1 #4");
  bench.up(1);
  CHECK(bench.submit(1, 2, 1, true) == "");
  CHECK(bench.arrives(0, 3) == "keep 0, 0>2 #5");
  CHECK(bench.submit(2, 0, 1, true) == "1>s2:0 #6");
}

TEST_CASE("replacements share the shards of lost workers") {
  Bench bench({.most = 2}, 4);
  bench.down(2);
  bench.down(3);
  CHECK(bench.submit(1, 0, 2, true) == "0>0 #1");
  CHECK(bench.submit(1, 1, 3, true) == "1>1 #2");
}

TEST_CASE("no more is under way or waits than there are credits") {
  Bench bench({.most = 2}, 3);
  bench.credits(2);
  CHECK(bench.submit(1, 0) == "0>0 #1");
  CHECK(bench.submit(1, 1) == "1>1 #2");
  CHECK(bench.submit(1, 2) == "");
  CHECK(bench.arrives(1, 2) == "keep 1");
  CHECK(bench.arrives(0, 1) == "keep 0");
  CHECK(bench.take(1, 0) == "2>2 #3");
  CHECK(bench.submit(1, 3) == "");
  CHECK(bench.credits(3) == "0>3 #4");
}

TEST_CASE("what a loop takes next needs no credit") {
  Bench bench({.most = 2}, 2);
  bench.credits(1);
  CHECK(bench.submit(1, 0) == "0>0 #1");
  CHECK(bench.submit(2, 0) == "1>s2:0 #2");
  CHECK(bench.submit(2, 1) == "");
  bench.credits(0);
  CHECK(bench.arrives(1, 2) == "keep 0");
  CHECK(bench.take(2, 0) == "1>s2:1 #3");
}

TEST_CASE("streams share: a loop that waits comes first, then who holds the fewest credits") {
  Bench bench({.depth = 1, .most = 1}, 2);
  bench.credits(4);
  for (std::uint64_t number = 0; number < 6; ++number) bench.submit(1, number);
  for (std::uint64_t number = 0; number < 6; ++number) bench.submit(2, number);
  CHECK(bench.arrives(0, 1) == "keep 0, 0>s2:0 #3");
  CHECK(bench.arrives(1, 2) == "keep 1, 1>s2:1 #4");
  CHECK(bench.arrives(0, 3) == "keep 0");
  CHECK(bench.take(1, 0) == "0>2 #5");
  bench.arrives(1, 4);
  CHECK(bench.take(2, 0) == "1>s2:2 #6");
}

TEST_CASE("an idle worker copies what is late, and the first copy counts") {
  Bench bench({.depth = 1, .most = 1}, 2);
  bench.submit(1, 0);
  bench.submit(1, 1);
  teach(bench, 0, 1, 0, 100ms);
  CHECK(bench.submit(1, 2) == "0>2 #3");
  bench.starts(1, 2);
  bench.starts(0, 3);
  CHECK(bench.wait(100ms) == "");
  CHECK(bench.arrives(0, 3) == "keep 2");
  CHECK(bench.wait(99ms) == "");
  CHECK(bench.wait(1ms) == "0>1 #4");
  CHECK(bench.wait(1h) == "");
  SECTION("the copy is first") {
    CHECK(bench.arrives(0, 4) == "keep 1, stop #2");
    CHECK(bench.arrives(1, 2) == "discard #2");
  }
  SECTION("the copy is second") {
    CHECK(bench.arrives(1, 2) == "keep 1, stop #4");
    CHECK(bench.arrives(0, 4) == "discard #4");
  }
  SECTION("the copy is lost: another one is made") {
    CHECK(bench.down(0) == "");
    CHECK(bench.up(0) == "0>1 #5");
  }
  SECTION("the first one is lost") {
    CHECK(bench.down(1) == "");
    CHECK(bench.arrives(0, 4) == "keep 1");
  }
}

TEST_CASE("what waits behind something late is copied too, the loop's next one first") {
  Bench bench({.most = 2}, 3);
  for (std::uint64_t number = 0; number < 6; ++number) bench.submit(1, number);
  bench.starts(0, 1);
  for (WorkerIndex worker : {1, 2}) {
    auto attempt = static_cast<Attempt>(worker + 1);
    bench.starts(worker, attempt);
    bench.arrives(worker, attempt);
    bench.starts(worker, attempt + 3);
  }
  bench.now += 100ms;
  CHECK(bench.arrives(1, 5) == "keep 4, 1>0 #7");
  CHECK(bench.arrives(2, 6) == "keep 5, 2>3 #8");
}

TEST_CASE("a frozen worker does not block a loop that has no credits left") {
  Bench bench({.most = 2}, 2);
  bench.credits(3);
  for (std::uint64_t number = 0; number < 8; ++number) bench.submit(1, number);  // 0 and 2 to worker 0, 1 to worker 1
  bench.starts(1, 2);
  bench.now += 10ms;
  bench.arrives(1, 2);
  CHECK(bench.wait(1s) == "1>0 #4");
  CHECK(bench.arrives(1, 4) == "keep 0, stop #1");
  CHECK(bench.take(1, 0) == "1>3 #5");
  bench.starts(1, 5);
  bench.now += 10ms;
  CHECK(bench.arrives(1, 5) == "keep 3");
  CHECK(bench.take(1, 1) == "1>4 #6");
  CHECK(bench.arrives(1, 6) == "keep 4, 1>2 #7");
}

TEST_CASE("a pinned task is not copied") {
  Bench bench({.most = 2}, 2);
  bench.submit(1, 0, 0, true);
  bench.starts(0, 1);
  CHECK(bench.wait(1h) == "");
}

TEST_CASE("a task that is returned goes to another worker, never to the same one") {
  Bench bench({.most = 2}, 3);
  bench.submit(1, 0);
  CHECK(bench.returns(0, 1) == "1>0 #2");
  CHECK(bench.down(1) == "2>0 #3");
  CHECK(bench.down(2) == "give up 0");
  CHECK(bench.take(1, 0) == "");
}

TEST_CASE("a task that all have returned is given up, once") {
  Bench bench({.most = 2}, 2);
  bench.submit(1, 0);
  bench.submit(1, 1);
  CHECK(bench.returns(0, 1) == "1>0 #3");
  CHECK(bench.returns(1, 3) == "give up 0");
  CHECK(bench.take(1, 0) == "");
  CHECK(bench.arrives(1, 2) == "keep 1");
}

TEST_CASE("a task during which one worker after the other is lost is given up, and what was behind it is not") {
  Bench bench({.most = 2, .most_deaths = 3}, 1);
  bench.submit(1, 0);
  bench.submit(1, 1);
  Attempt attempt = 1;
  for (int death = 1; death < 3; ++death) {
    bench.starts(0, attempt);
    CHECK(bench.down(0) == "");
    attempt = static_cast<Attempt>(2 * death + 1);
    CHECK(bench.up(0) == fmt::format("0>0 #{}, 0>1 #{}", attempt, attempt + 1));
  }
  bench.starts(0, attempt);
  CHECK(bench.down(0) == "give up 0");
  CHECK(bench.take(1, 0) == "");
  CHECK(bench.up(0) == "0>1 #7");
  CHECK(bench.arrives(0, 7) == "keep 1");
}

TEST_CASE("a worker that is lost before it began is nobody's fault, and the next one says that it begins") {
  Bench bench({.most = 2, .most_deaths = 1}, 1);
  bench.submit(1, 0);
  for (int i = 0; i < 10; ++i) {
    CHECK(bench.down(0) == "");
    const auto actions = bench.schedule.handle(WorkerUp{0, bench.now});
    REQUIRE(actions.size() == 1);
    CHECK(std::get<Assign>(actions.front()).told);
  }
}

TEST_CASE("what a worker was lost over is not copied to others meanwhile") {
  Bench bench({.depth = 1, .most = 1}, 2);
  bench.submit(1, 0);
  bench.starts(0, 1);
  CHECK(bench.down(0) == "1>0 #2");
  bench.starts(1, 2);
  bench.up(0);
  CHECK(bench.wait(1h) == "");
}

TEST_CASE("who has returned a task is asked last for a while") {
  Bench bench({.depth = 1, .most = 1}, 2);
  bench.submit(1, 0);
  CHECK(bench.returns(0, 1) == "1>0 #2");
  CHECK(bench.submit(1, 1) == "");
  CHECK(bench.wait(1s) == "0>1 #3");
}

TEST_CASE("a stream that is closed is stopped, and others get its place") {
  Bench bench({.depth = 1, .most = 1}, 2);
  bench.credits(2);
  for (std::uint64_t number = 0; number < 4; ++number) bench.submit(1, number);
  CHECK(bench.submit(2, 0) == "");
  CHECK(bench.arrives(0, 1) == "keep 0, 0>s2:0 #3");
  CHECK(bench.close(1) == "stop #2");
  CHECK(bench.arrives(1, 2) == "discard #2");
  CHECK(bench.submit(2, 1) == "1>s2:1 #4");
  CHECK(bench.close(7) == "");
}

TEST_CASE("a worker so slow that the others would wait for it gets nothing, until it is tried again") {
  Bench bench({.depth = 1, .most = 1}, 2);
  bench.credits(3);
  bench.submit(1, 0);
  bench.submit(1, 1);
  bench.starts(1, 2);
  teach(bench, 0, 1, 0, 10ms);
  bench.now += 990ms;
  bench.arrives(1, 2);
  bench.take(1, 1);
  CHECK(bench.submit(1, 2) == "0>2 #3");
  CHECK(bench.submit(1, 3) == "");
  CHECK(bench.arrives(0, 3) == "keep 2, 0>3 #4");
  bench.now += 20s;
  CHECK(bench.submit(1, 4) == "1>4 #5");
}

TEST_CASE("nothing that is not known does harm") {
  Bench bench({.most = 2}, 1);
  CHECK(bench.arrives(0, 77) == "discard #77");
  CHECK(bench.returns(0, 77) == "");
  CHECK(bench.starts(0, 77) == "");
  CHECK(bench.take(9, 0) == "");
  CHECK(bench.down(5) == "");
  CHECK(bench.feed(AlarmRang{bench.now}) == "");
}

TEST_CASE("a worker gets as many short tasks ahead as fill two milliseconds") {
  Bench bench({.depth = 2, .ahead = 2ms, .most = 6}, 1);
  std::string sent;
  for (std::uint64_t number = 0; number < 99; ++number) sent += bench.submit(1, number);
  Attempt arrived = 0;
  const auto under_way = [&](int tasks, Duration each) {
    for (; tasks > 0; --tasks) {
      bench.now += each;
      sent += bench.arrives(0, ++arrived);
    }
    return std::count(sent.begin(), sent.end(), '>') - static_cast<std::ptrdiff_t>(arrived);
  };
  CHECK(under_way(1, 10ms) == 2);
  CHECK(under_way(20, 400us) == 4);
  CHECK(under_way(20, 20us) == 6);
  CHECK(under_way(20, 10ms) == 2);
}

TEST_CASE("what a worker says of its time counts where answers come together") {
  Bench bench({.depth = 1, .ahead = 2ms, .most = 8}, 1);
  for (std::uint64_t number = 0; number < 9; ++number) bench.submit(1, number);
  CHECK(bench.feed(Arrived{0, 1, bench.now, 1ms}) == "keep 0, 0>1 #2, 0>2 #3");
}

}  // namespace schedule_test
