#include "run/agent/heartbeats.hpp"

#include "catch.hpp"
#include "run/scenario.hpp"

namespace heartbeats_test {

using namespace taas;
using namespace taas::run;

namespace {

AgentPolicy hasty() {
  AgentPolicy policy;
  policy.lost_after = std::chrono::milliseconds(2500);
  return policy;
}

}  // namespace

TEST_CASE("heartbeats are numbered and follow each other at an interval") {
  Heartbeats beats({});
  CHECK(beats.beat(at_ms(0)).number == 1);
  CHECK(beats.next_beat() == at_ms(250));
  CHECK_FALSE(beats.take_due_beat(at_ms(249)));
  CHECK(beats.take_due_beat(at_ms(250)));
  CHECK(beats.beat(at_ms(250)).number == 2);
  beats.stop();
  CHECK_FALSE(beats.next_beat().has_value());
}

TEST_CASE("the fence counts from when the last heartbeat that was answered had been sent") {
  Heartbeats beats(hasty());
  beats.begin(at_ms(0));
  CHECK(beats.fence_at() == at_ms(1500));
  beats.on(HeartbeatEcho{2, at_ms(500), at_ms(9000)}, false);
  CHECK(beats.fence_at() == at_ms(2000));
  beats.on(HeartbeatEcho{1, at_ms(250), at_ms(9000)}, false);
  CHECK(beats.fence_at() == at_ms(2000));
}

TEST_CASE("another connection is asked for after two seconds without an answer, or a third of the patience") {
  Heartbeats beats({});
  beats.begin(at_ms(0));
  CHECK_FALSE(beats.take_ask(at_ms(1999)));
  CHECK(beats.take_ask(at_ms(2000)));
  CHECK_FALSE(beats.take_ask(at_ms(2999)));
  CHECK(beats.take_ask(at_ms(3000)));
  beats.on({1, at_ms(3000), at_ms(9000)}, true);
  CHECK_FALSE(beats.take_ask(at_ms(4999)));
  Heartbeats hasty_beats(hasty());
  hasty_beats.begin(at_ms(0));
  CHECK_FALSE(hasty_beats.take_ask(at_ms(499)));
  CHECK(hasty_beats.take_ask(at_ms(500)));
}

TEST_CASE("a link that never carries anything again is given up, whatever is answered over others") {
  Heartbeats beats({});
  beats.begin(at_ms(0));
  beats.on({1, at_ms(500), at_ms(9000)}, false);
  beats.on({2, at_ms(40'000), at_ms(9000)}, true);
  CHECK(beats.fence_at() == at_ms(58'000));
  beats.on({3, at_ms(50'000), at_ms(9000)}, true);
  CHECK(beats.fence_at() == at_ms(60'500));
}

TEST_CASE("who did not run while the coordinator answered waits for one more answer") {
  Heartbeats beats({});
  beats.begin(at_ms(0));
  SECTION("at most until the coordinator can have given it up") {
    beats.wake(at_ms(250), at_ms(17'000));
    CHECK(beats.fence_at() == at_ms(22'000));
  }
  SECTION("or with a moment left to kill ranks") {
    beats.wake(at_ms(250), at_ms(25'000));
    CHECK(beats.fence_at() == at_ms(27'000));
  }
  SECTION("or none") {
    beats.wake(at_ms(250), at_ms(28'000));
    CHECK(beats.fence_at() < at_ms(28'000));
  }
  SECTION("and for longer where that is past") {
    beats.wake(at_ms(250), at_ms(60'000));
    CHECK(beats.is_waking());
    CHECK(beats.fence_at() == at_ms(65'000));
    beats.wake(at_ms(60'250), at_ms(64'000));
    CHECK(beats.fence_at() == at_ms(65'000));
    beats.on({2, at_ms(250), at_ms(9000)}, false);  // to what was sent before
    CHECK(beats.is_waking());
    beats.on({9, at_ms(60'100), at_ms(9000)}, true);
    CHECK_FALSE(beats.is_waking());
    CHECK(beats.fence_at() == at_ms(78'100));
  }
  SECTION("but not where it had not answered before") {
    beats.wake(at_ms(2250), at_ms(60'000));
    CHECK_FALSE(beats.is_waking());
    CHECK(beats.fence_at() == at_ms(18'000));
  }
}

}  // namespace heartbeats_test
