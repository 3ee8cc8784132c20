// Tasks that go to another worker: because theirs is lost, because it returns them, or because they are late.
#include <fmt/format.h>

#include "catch.hpp"
#include "data/schedule/schedule.hpp"
#include "schedule_bench.hpp"

namespace schedule_reassignments_test {

using namespace taas;
using namespace taas::data;
using namespace std::chrono_literals;
using schedule_bench::Bench;
using schedule_bench::teach;

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

}  // namespace schedule_reassignments_test
