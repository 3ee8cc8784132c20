#include <future>

#include "catch.hpp"
#include "data/client/alarm_clock.hpp"
#include "data/client/batch_sizes.hpp"
#include "data/client/peer_watch.hpp"

namespace client_parts_test {

using namespace taas;
using namespace taas::data;
using namespace std::chrono_literals;

TEST_CASE("an alarm rings under the mutex, and again when it is set again") {
  std::mutex mutex;
  std::promise<void> first, second;
  int rings = 0;
  AlarmClock clock(mutex, [&] { (++rings == 1 ? first : second).set_value(); });
  {
    const std::lock_guard lock(mutex);
    clock.set(steady_now() + std::chrono::hours(1));
    clock.set(steady_now());
    CHECK(rings == 0);  // it cannot ring while the mutex is held
  }
  first.get_future().wait();
  {
    const std::lock_guard lock(mutex);
    clock.set(steady_now() + 1ms);
  }
  second.get_future().wait();
  clock.stop();
  CHECK(rings == 2);
}

TEST_CASE("an alarm that was stopped does not ring") {
  std::mutex mutex;
  bool rang = false;
  AlarmClock clock(mutex, [&] { rang = true; });
  clock.stop();
  {
    const std::lock_guard lock(mutex);
    clock.set(steady_now());
  }
  CHECK_FALSE(rang);
}

TEST_CASE("a peer is gone after five pings without a word") {
  using Verdict = PeerWatch::Verdict;
  const Instant begin{};
  PeerWatch watch(begin);
  CHECK(watch.look(begin + 999ms, 0, true) == Verdict::kWell);
  for (int i = 1; i <= 5; ++i) CHECK(watch.look(begin + i * 1s, 0, true) == Verdict::kPing);
  SECTION("then it is") { CHECK(watch.look(begin + 6s, 0, true) == Verdict::kGone); }
  SECTION("a byte is a word") { CHECK(watch.look(begin + 6s, 1, true) == Verdict::kPing); }
  SECTION("it cannot be heard while nobody reads") { CHECK(watch.look(begin + 6s, 0, false) == Verdict::kPing); }
  SECTION("what this process slept through is one ping") {
    watch.look(begin + 5s, 1, true);
    CHECK(watch.look(begin + 60s, 1, true) == Verdict::kPing);
    CHECK(watch.look(begin + 60s, 1, true) == Verdict::kWell);
  }
}

TEST_CASE("a batch is expected to be as large as the last of its definition") {
  BatchSizes sizes;
  CHECK(sizes.expected("a") == 0);
  CHECK(sizes.note("a", 10));
  CHECK_FALSE(sizes.note("b", 5));
  CHECK_FALSE(sizes.note("a", 7));
  CHECK_FALSE(sizes.note("a", 0));  // no batch
  CHECK(sizes.expected("a") == 7);
  CHECK(sizes.expected("b") == 5);
  CHECK(sizes.largest() == 10);
}

}  // namespace client_parts_test
