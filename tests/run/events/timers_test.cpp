#include "run/events/timers.hpp"

#include "catch.hpp"
#include "run/scenario.hpp"

namespace timers_test {

using namespace taas;
using namespace taas::run;

TEST_CASE("a timer is due once") {
  std::optional<Instant> timer = at_ms(10);
  CHECK_FALSE(take_due(timer, at_ms(9)));
  CHECK(take_due(timer, at_ms(10)));
  CHECK_FALSE(take_due(timer, at_ms(20)));
}

TEST_CASE("the earliest of the timers that are set comes first") {
  CHECK(earliest({std::nullopt, at_ms(20), at_ms(10)}) == at_ms(10));
  CHECK_FALSE(earliest({std::nullopt, std::nullopt}).has_value());
}

}  // namespace timers_test
