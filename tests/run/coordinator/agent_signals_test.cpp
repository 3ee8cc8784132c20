#include "run/coordinator/agent_signals.hpp"

#include <csignal>

#include "catch.hpp"
#include "coordinator_parts.hpp"

namespace agent_signals_test {

using namespace taas;
using namespace taas::run;

namespace {

struct Signals : Parts {
  Signals() : Parts(with_departures()) { add(2); }

  static CoordinatorPolicy with_departures() {
    auto made = run::policy(2, 1, 2);
    made.nodes_may_leave = true;
    made.run.preempt_signals = {SIGUSR1};
    return made;
  }

  AgentSignals signals{policy, agents};
};

}  // namespace

TEST_CASE("what stops an agent only stops the run, unless the coordinator was told the same") {
  Signals run;
  CHECK(run.signals.concerns_the_run(SIGTERM));
  run.signals.see(SIGUSR2);
  CHECK(run.signals.concerns_the_run(SIGTERM));
  run.signals.see(SIGTERM);
  CHECK_FALSE(run.signals.concerns_the_run(SIGTERM));
}

TEST_CASE("a request for a checkpoint concerns the run, another plain signal does not") {
  Signals run;
  run.signals.see(SIGTERM);
  CHECK(run.signals.concerns_the_run(SIGUSR1));
  CHECK_FALSE(run.signals.concerns_the_run(SIGUSR2));
}

TEST_CASE("an agent that leaves is dismissed when nothing of the generation lives there") {
  Signals run;
  CHECK(run.signals.lets_leave(AgentId{1}, SIGTERM));
  CHECK_FALSE(run.signals.lets_leave(AgentId{1}, SIGUSR2));
  run.signals.leave(AgentId{1}, SIGTERM);
  CHECK_FALSE(run.signals.lets_leave(AgentId{1}, SIGTERM));
  run.signals.part();
  CHECK(run.decided() == Strings{"1: dismissed 143 SIGTERM: the run goes on without this node"});
  run.signals.part();
  CHECK(run.decided().empty());
}

TEST_CASE("nobody leaves alone once the run stops") {
  Signals run;
  run.signals.see(SIGTERM);
  CHECK_FALSE(run.signals.lets_leave(AgentId{1}, SIGTERM));
}

}  // namespace agent_signals_test
