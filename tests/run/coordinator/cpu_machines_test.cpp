#include "run/coordinator/cpu_machines.hpp"

#include "catch.hpp"
#include "coordinator_parts.hpp"

namespace cpu_machines_test {

using namespace taas;
using namespace taas::run;

namespace {

/// One node of ranks, agent 0, and room for a CPU machine, which is agent 1.
struct Machines : Parts {
  Machines() : Parts(with_one()) { add(1); }

  static CoordinatorPolicy with_one() {
    auto made = run::policy(1, 1, 1);
    made.data = {1, 1, {"alpha"}};
    return made;
  }
  void arrive() {
    agents.add(AgentId{1}, hello(1));
    machines.arrive(AgentId{1}, hello(1));
  }

  CpuMachines machines{policy, decisions, agents};
};

}  // namespace

TEST_CASE("all agents are told of the workers, and newcomers when there are any") {
  Machines run;
  run.machines.tell(AgentId{0});
  CHECK(run.decided().empty());
  run.arrive();
  run.machines.ready(AgentId{1}, {0, {50, 51}});
  run.machines.tell_all();
  CHECK(run.decided() == Strings{"0: workers 50 51", "1: workers 50 51"});
  run.machines.tell(AgentId{0});
  CHECK(run.decided() == Strings{"0: workers 50 51"});
}

TEST_CASE("a machine that is lost is started again after a pause") {
  Machines run;
  run.arrive();
  CHECK(run.agents.silence().next_check().has_value());
  auto hello = run.agents.remove(AgentId{1}).hello;
  run.machines.lose(AgentId{1});
  run.machines.tell_loss(hello, {"its agent has ended", at_ms(0), at_ms(0)});
  CHECK(run.decided() == Strings{"say CPU machine host1 was lost: its agent has ended; the others go on"});
  CHECK(run.machines.next_start() == at_ms(1000));
  run.machines.start_lost(at_ms(1000));
  CHECK(run.decided() == Strings{"start agent 1"});
}

TEST_CASE("a machine that makes no batches is dismissed") {
  Machines run;
  run.arrive();
  run.machines.refuse(AgentId{1}, "no Python there", 2);
  CHECK(run.decided() == Strings{"say host1 makes no batches: no Python there", "1: dismissed 2 no Python there"});
  CHECK(run.machines.nodes().none_left());
}

}  // namespace cpu_machines_test
