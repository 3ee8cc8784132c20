#include "run/agent/restart_pause.hpp"

#include "catch.hpp"
#include "run/scenario.hpp"

namespace restart_pause_test {

using namespace taas;
using namespace taas::run;
using namespace std::chrono_literals;

TEST_CASE("the first two ends are followed at once, the third after a pause that doubles") {
  RestartPause pause;
  CHECK(pause.next(at_ms(0)) == 0s);
  CHECK(pause.is_news());
  CHECK(pause.next(at_ms(100)) == 0s);
  CHECK_FALSE(pause.is_news());
  CHECK(pause.next(at_ms(200)) == 1s);
  CHECK(pause.next(at_ms(1300)) == 2s);
  CHECK(pause.next(at_ms(3400)) == 4s);
  CHECK(pause.next(at_ms(7500)) == 8s);
  CHECK(pause.next(at_ms(15600)) == 10s);
  CHECK(pause.next(at_ms(25700)) == 10s);
  CHECK_FALSE(pause.is_news());
}

TEST_CASE("who has worked for ten seconds starts anew") {
  RestartPause pause;
  for (long when : {0, 100, 200}) pause.next(at_ms(when));
  CHECK(pause.next(at_ms(200 + 1000 + 10001)) == 0s);
  CHECK(pause.is_news());
}

}  // namespace restart_pause_test
