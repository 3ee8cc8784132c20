#include "run/coordinator/members.hpp"

#include "catch.hpp"
#include "coordinator_parts.hpp"

namespace members_test {

using namespace taas;
using namespace taas::run;

namespace {

/// Generation 0 with two nodes of two ranks each, whose agents are 0 and 1.
struct TwoMembers : Parts {
  TwoMembers() {
    add(2);
    members.begin(Generation{0});
    members.seat({AgentId{0}, AgentId{1}}, share_ranks(std::vector<int>{2, 2}));
    members.start();
  }

  Members members{decisions, agents};
};

RankExited exited(int rank, long when) { return {Generation{0}, Rank{rank}, {1}, {}, at_ms(when)}; }

}  // namespace

TEST_CASE("each member is told its share of the world") {
  TwoMembers run;
  auto starts = run.members.starts({"10.0.0.0", 29500, {}});
  CHECK(brief(starts.at(AgentId{1})) == "start 0 node 1 ranks 2-3 of 4 at 10.0.0.0");
  CHECK(starts.at(AgentId{0}).nodes == 2);
  CHECK(run.members.agent_of_rank() == std::vector{AgentId{0}, AgentId{0}, AgentId{1}, AgentId{1}});
}

TEST_CASE("a signal goes to the agents of the ranks that are meant") {
  TwoMembers run;
  run.members.execute(SignalRanks{Generation{0}, ranks({1, 2, 3}), 15});
  CHECK(run.decided() == Strings{"0: signal 15 to 1", "1: signal 15 to 2"});
}

TEST_CASE("an agent is believed about its own ranks only, and the first one about the store") {
  TwoMembers run;
  run.members.on(AgentId{0}, exited(2, 0));
  run.members.on(AgentId{0}, exited(7, 0));
  run.members.on(AgentId{1}, StoreReached{Generation{0}, at_ms(0)});
  run.members.on(AgentId{0}, RankJoined{Generation{1}, Rank{0}, at_ms(0)});
  CHECK(run.reported().empty());
  run.members.on(AgentId{1}, exited(2, 0));
  run.members.on(AgentId{0}, RankJoined{Generation{0}, Rank{3}, at_ms(0)});
  CHECK(run.reported() == Strings{"rank_exited", "rank_joined"});
}

TEST_CASE("nothing happens before the generation or in the future") {
  TwoMembers run;
  run.at(100);
  run.members.on(AgentId{0}, exited(0, 5000));
  run.members.on(AgentId{0}, exited(1, -5000));
  CHECK(std::get<RankExited>(*run.decisions.next_report()).at == at_ms(100));
  CHECK(std::get<RankExited>(*run.decisions.next_report()).at == at_ms(0));
}

TEST_CASE("a generation is gone when all have said so, or can have no rank any more") {
  TwoMembers run;
  run.members.on(AgentId{0}, GenerationGone{Generation{0}, at_ms(0)});
  run.members.lose(AgentId{1}, "host1", {"its agent has ended", at_ms(0), at_ms(500)}, true);
  CHECK(run.reported() == Strings{"node_lost"});
  run.members.execute(KillGeneration{Generation{0}});
  CHECK(run.decided() == Strings{"1: kill"});  // node 0 has nothing left to kill
  CHECK(run.reported().empty());
  CHECK(run.members.next_check() == at_ms(500));
  run.at(500);
  run.members.check_gone();
  CHECK(run.reported() == Strings{"generation_gone"});
  run.members.check_gone();
  CHECK(run.reported().empty());
}

TEST_CASE("nobody is a member until the nodes of a generation are known") {
  TwoMembers run;
  run.members.begin(Generation{1});
  CHECK_FALSE(run.members.contains(AgentId{0}));
  run.members.execute(KillGeneration{Generation{1}});
  CHECK(run.decided().empty());
  CHECK(run.reported().empty());
}

}  // namespace members_test
