#include "run/coordinator/gathering.hpp"

#include "catch.hpp"
#include "coordinator_parts.hpp"

namespace gathering_test {

using namespace taas;
using namespace taas::run;

namespace {

struct Way : Parts {
  explicit Way(CoordinatorPolicy given = run::policy(2, 2, 2)) : Parts(std::move(given)) {
    gathering.begin(Generation{0});
  }

  /// Agents 0..count-1 are there and prepared.
  void come(int count) {
    add(count);
    for (int i = 0; i < count; ++i) {
      membership.arrive(AgentId{i}, hello(i), decisions.now());
      membership.ready(AgentId{i});
    }
    gathering.advance();
  }
  void reached(int agent, Strings addresses) { gathering.on(AgentId{agent}, {std::move(addresses), 1}); }

  Membership membership{membership_policy(policy)};
  DataNodes data_nodes{policy.data};
  LoaderWait loader{policy, data_nodes, decisions};
  Members members{decisions, agents};
  Gathering gathering{policy, decisions, agents, membership, members, loader};
};

}  // namespace

TEST_CASE("nodes that reach the first one are seated") {
  Way run;
  run.come(2);
  CHECK(run.decided() == Strings{"0: probe", "1: probe"});
  run.reached(0, {"10.0.0.0"});
  CHECK(run.reported().empty());
  run.reached(1, {"10.0.0.0"});
  CHECK(run.reported() == Strings{"nodes_gathered"});
  CHECK_FALSE(run.gathering.active());
  CHECK(run.members.agent_of_node() == std::vector{AgentId{0}, AgentId{1}});
  CHECK(run.gathering.meeting_point().master_addr == "10.0.0.0");
  CHECK(run.gathering.meeting_point().master_port == 4711);
}

TEST_CASE("who is missing is told after a while") {
  Way run;
  run.come(1);
  CHECK(run.gathering.next_check() == at_ms(10000));
  run.at(10000);
  run.gathering.advance();
  CHECK(run.decided() == Strings{"say waiting for nodes: 1 of 2 are there; missing: node 1"});
}

TEST_CASE("a node that does not reach the first one ends the wait") {
  Way run;
  run.come(2);
  run.reached(0, {"10.0.0.0"});
  run.reached(1, {});
  CHECK(run.reported() == Strings{"gather_failed"});
  CHECK_FALSE(run.gathering.active());
}

TEST_CASE("a wait fails once") {
  Way run;
  run.gathering.fail("no data", 2);
  run.gathering.fail("no data", 2);
  CHECK(run.reported() == Strings{"gather_failed"});
  CHECK_FALSE(run.gathering.next_check().has_value());
}

TEST_CASE("a node that counts for itself is seated with its own number of ranks") {
  auto wanted = run::policy(1, 1, 1);
  wanted.in_process = true;
  wanted.nodes_count_themselves = true;
  Way run(wanted);
  auto large = hello(0);
  large.ranks = 5;
  run.agents.add(AgentId{0}, large);
  run.membership.arrive(AgentId{0}, large, at_ms(0));
  run.membership.ready(AgentId{0});
  run.gathering.advance();
  CHECK(std::get<NodesGathered>(*run.decisions.next_report()).world_size == 5);
}

}  // namespace gathering_test
