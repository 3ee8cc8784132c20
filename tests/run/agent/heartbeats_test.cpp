#include "run/agent/heartbeats.hpp"

#include "catch.hpp"
#include "run/scenario.hpp"

namespace heartbeats_test {

using namespace taas;
using namespace taas::run;

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
  Heartbeats beats({});
  beats.begin(at_ms(0));
  CHECK(beats.fence_at() == at_ms(1500));
  beats.on(HeartbeatEcho{2, at_ms(500), at_ms(9000)});
  CHECK(beats.fence_at() == at_ms(2000));
  beats.on(HeartbeatEcho{1, at_ms(250), at_ms(9000)});
  CHECK(beats.fence_at() == at_ms(2000));
}

}  // namespace heartbeats_test
