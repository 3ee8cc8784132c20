#include "run/supervisor/deadlines.hpp"

#include "catch.hpp"
#include "run/scenario.hpp"

namespace deadlines_test {

using namespace taas::run;

TEST_CASE("the earliest deadline counts, and each comes once") {
  Deadlines deadlines;
  CHECK_FALSE(deadlines.earliest());
  deadlines.set(Timer::kGiveUp, at_ms(30));
  deadlines.set(Timer::kKillAgain, at_ms(10));
  deadlines.set(Timer::kKillNotice, at_ms(20));
  CHECK(deadlines.earliest() == at_ms(10));
  CHECK_FALSE(deadlines.take_due(at_ms(9)));
  CHECK(deadlines.take_due(at_ms(25)) == Timer::kKillAgain);
  CHECK(deadlines.take_due(at_ms(25)) == Timer::kKillNotice);
  CHECK_FALSE(deadlines.take_due(at_ms(25)));
  CHECK(deadlines.earliest() == at_ms(30));
}

TEST_CASE("a deadline can be moved and cancelled") {
  Deadlines deadlines;
  deadlines.set(Timer::kShutdown, at_ms(10));
  deadlines.set(Timer::kShutdown, at_ms(40));
  CHECK(deadlines.earliest() == at_ms(40));
  deadlines.cancel(Timer::kShutdown);
  CHECK_FALSE(deadlines.earliest());
}

TEST_CASE("deadlines that are set can be postponed, one of them or all") {
  Deadlines deadlines;
  deadlines.postpone(Timer::kGiveUp, at_ms(50));
  CHECK_FALSE(deadlines.earliest());
  deadlines.set(Timer::kGiveUp, at_ms(30));
  deadlines.set(Timer::kKillAgain, at_ms(10));
  deadlines.postpone(Timer::kGiveUp, at_ms(20));
  CHECK(deadlines.due(Timer::kGiveUp) == at_ms(30));
  deadlines.postpone(Timer::kGiveUp, at_ms(50));
  CHECK(deadlines.due(Timer::kGiveUp) == at_ms(50));
  deadlines.postpone(std::chrono::milliseconds(7));
  CHECK(deadlines.due(Timer::kGiveUp) == at_ms(57));
  CHECK(deadlines.due(Timer::kKillAgain) == at_ms(17));
}

}  // namespace deadlines_test
