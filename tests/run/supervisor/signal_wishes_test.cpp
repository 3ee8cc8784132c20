#include "run/supervisor/signal_wishes.hpp"

#include <csignal>

#include "catch.hpp"
#include "run/scenario.hpp"

namespace signal_wishes_test {

using namespace taas;
using namespace taas::run;

TEST_CASE("stop signals stop, others are passed on") {
  Policy policy;
  SignalWishes wishes(policy);
  CHECK(wishes.read(SIGTERM, at_ms(0)) == SignalWish::kStop);
  CHECK(wishes.read(SIGUSR1, at_ms(0)) == SignalWish::kPassOn);
}

TEST_CASE("the same stop signal soon after is no second wish, except from a person") {
  Policy policy;
  SignalWishes wishes(policy);
  wishes.read(SIGTERM, at_ms(0));
  CHECK(wishes.read(SIGTERM, at_ms(100)) == SignalWish::kNone);
  CHECK(wishes.read(SIGTERM, at_ms(250)) == SignalWish::kStop);
  wishes.read(SIGINT, at_ms(300));
  CHECK(wishes.read(SIGINT, at_ms(310)) == SignalWish::kStop);
}

TEST_CASE("a batch system's warning asks for a checkpoint, once, even with a stop signal") {
  Policy policy;
  policy.preempt_signals = {SIGTERM};
  SignalWishes wishes(policy);
  CHECK(wishes.read(SIGTERM, at_ms(0)) == SignalWish::kCheckpoint);
  CHECK_FALSE(wishes.checkpoint_requested());
  CHECK(wishes.begin_checkpoint());
  CHECK(wishes.checkpoint_requested());
  CHECK_FALSE(wishes.begin_checkpoint());
}

}  // namespace signal_wishes_test
