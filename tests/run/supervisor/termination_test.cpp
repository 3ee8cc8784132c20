#include "run/supervisor/termination.hpp"

#include <csignal>

#include "catch.hpp"
#include "run/events/type_name.hpp"
#include "run/scenario.hpp"

namespace termination_test {

using namespace taas;
using namespace taas::run;

namespace {

struct Ending {
  Ending() { actions.begin(at_ms(0)); }

  std::vector<std::string> decided() {
    std::vector<std::string> all;
    for (const auto& action : actions.take()) {
      all.push_back(std::visit([](const auto& what) { return type_name<std::decay_t<decltype(what)>>(); }, action));
    }
    return all;
  }

  Policy policy = policy_for(2);
  GenerationRecord record = all_living(2);
  Deadlines deadlines;
  SupervisorActions actions;
  Termination termination{policy, record, deadlines, actions};
};

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("ranks are asked to end, and killed when they do not") {
  Ending run;
  run.deadlines.set(Timer::kJoinNotice, at_ms(1));
  run.termination.stop(SIGTERM);
  CHECK(run.decided() == Names{"signal_ranks"});
  CHECK(run.deadlines.earliest() == at_ms(30000));
  run.termination.on_shutdown_timeout();
  CHECK(run.decided() == Names{"kill_generation"});
  CHECK(run.deadlines.earliest() == at_ms(1000));
  run.termination.kill();
  CHECK(run.decided().empty());
}

TEST_CASE("what is killed is killed again until it is given up") {
  Ending run;
  run.termination.kill();
  run.termination.on_kill_again();
  CHECK(run.decided() == Names{"kill_generation", "kill_generation"});
  run.termination.on_kill_notice();
  CHECK_FALSE(run.termination.gave_up());
  run.termination.on_give_up();
  CHECK(run.termination.gave_up());
  CHECK(run.decided() == Names{"notify", "notify"});
}

TEST_CASE("leftovers of ranks that ended well are waited for, and then have a moment to end") {
  Ending run;
  run.termination.await_leftovers();
  auto decided = run.actions.take();
  REQUIRE(decided.size() == 1);
  CHECK(std::get<SweepGeneration>(decided.front()).signal == 0);
  CHECK(run.deadlines.earliest() == at_ms(300000));
  run.deadlines.cancel(Timer::kLeftover);
  run.termination.on_leftover_timeout();
  CHECK(run.decided() == Names{"notify", "sweep_generation"});
  CHECK_FALSE(run.record.killed());
  CHECK(run.deadlines.earliest() == at_ms(2000));
}

TEST_CASE("leftovers of ranks that were stopped have what is left of the ranks' time") {
  Ending run;
  run.termination.stop(SIGINT);
  run.termination.sweep();
  auto decided = run.actions.take();
  REQUIRE(decided.size() == 2);
  CHECK(std::get<SweepGeneration>(decided.back()).signal == SIGTERM);
  CHECK_FALSE(run.record.killed());
  CHECK(run.deadlines.earliest() == at_ms(30000));
}

}  // namespace termination_test
