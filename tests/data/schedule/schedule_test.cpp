#include "data/schedule/schedule.hpp"

#include <algorithm>
#include <string>

#include "catch.hpp"
#include "schedule_bench.hpp"

namespace schedule_test {

using namespace taas;
using namespace taas::data;
using namespace std::chrono_literals;
using schedule_bench::Bench;
using schedule_bench::teach;

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
