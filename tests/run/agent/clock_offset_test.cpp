#include "run/agent/clock_offset.hpp"

#include <cmath>

#include "catch.hpp"
#include "run/random.hpp"
#include "run/scenario.hpp"

namespace clock_offset_test {

using namespace taas;
using namespace taas::run;
using namespace std::chrono_literals;

namespace {

/// An echo to a heartbeat sent at `sent`, over a network with these delays, when the coordinator is `ahead`.
void echo(ClockOffset& clock, Instant sent, Duration there, Duration back, Duration ahead) {
  clock.add(sent, sent + there + ahead, sent + there + back);
}

}  // namespace

TEST_CASE("nothing is known before the first echo, and instants that are not set stay so") {
  ClockOffset clock;
  CHECK_FALSE(clock.known());
  CHECK(clock.to_coordinator(at_ms(5)) == at_ms(5));
  echo(clock, at_ms(0), 1ms, 1ms, 3600s);
  CHECK(clock.known());
  CHECK(clock.offset() == 3600s);
  CHECK(clock.to_coordinator(at_ms(5)) == at_ms(5) + 3600s);
  CHECK(clock.to_coordinator(Instant{}) == Instant{});
}

TEST_CASE("the shortest round trip wins, whatever comes later") {
  ClockOffset clock;
  echo(clock, at_ms(0), 40ms, 2ms, -7s);
  echo(clock, at_ms(250), 1ms, 1ms, -7s);
  CHECK(clock.offset() == -7s);
  echo(clock, at_ms(500), 1ms, 90ms, -7s);
  CHECK(clock.offset() == -7s);
}

TEST_CASE("drift is followed") {
  ClockOffset clock;
  Random random(3);
  for (int i = 0; i < 20000; ++i) {  // 83 minutes, the clocks part by 50 millionths
    Duration ahead = 10s + std::chrono::microseconds(250 * 50 * i / 1000);
    echo(clock, at_ms(250L * i), 100us + random.up_to(5ms), 100us + random.up_to(5ms), ahead);
    CHECK(std::chrono::abs(clock.offset() - ahead) < 5ms);
  }
}

TEST_CASE("a clock that has jumped is believed at once, even over a slow network") {
  ClockOffset clock;
  echo(clock, at_ms(0), 1ms, 1ms, 5s);
  echo(clock, at_ms(250), 100ms, 100ms, 65s);
  CHECK(clock.offset() == 65s);
}

}  // namespace clock_offset_test
