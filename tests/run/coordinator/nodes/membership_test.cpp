#include "run/coordinator/nodes/membership.hpp"

#include "catch.hpp"
#include "run/scenario.hpp"

namespace membership_test {

using namespace taas;
using namespace taas::run;
using namespace std::chrono_literals;

namespace {

MembershipPolicy policy(int nodes, int min_nodes, int expected) {
  MembershipPolicy made;
  made.ranks_on_node.assign(static_cast<std::size_t>(nodes), 2);
  made.min_nodes = min_nodes;
  made.expected_agents = expected;
  return made;
}

Hello hello(int order, int plays = 1) {
  Hello made;
  made.hostname = "host" + std::to_string(order);
  made.order = order;
  made.plays = plays;
  return made;
}

void come(Membership& members, int agent, int order, int plays = 1) {
  members.arrive(AgentId{agent}, hello(order, plays), at_ms(0));
  members.ready(AgentId{agent});
}

/// The agents by node; empty: not yet, or never.
std::vector<int> chosen(const Membership& members, long when) {
  std::vector<int> agents;
  auto found = members.choose(at_ms(when));
  if (auto* there = std::get_if<Chosen>(&found)) {
    for (AgentId agent : there->agent_of_node) agents.push_back(agent.value);
  }
  return agents;
}

std::string failure(const Membership& members, long when) {
  auto found = members.choose(at_ms(when));
  auto* failed = std::get_if<GatherFailed>(&found);
  return failed == nullptr ? "" : failed->summary;
}

void seat(Membership& members, const std::vector<int>& agents) {
  std::vector<AgentId> seats;
  for (int agent : agents) seats.push_back(AgentId{agent});
  members.seat(seats);
}

using Agents = std::vector<int>;

}  // namespace

TEST_CASE("nodes are in the order of the list, whatever the order in which they come") {
  Membership members(policy(3, 3, 3));
  members.begin(Generation{0}, at_ms(0));
  come(members, 7, 2);
  come(members, 8, 0);
  CHECK(chosen(members, 100) == Agents{});
  come(members, 9, 1);
  CHECK(chosen(members, 200) == Agents{8, 9, 7});
}

TEST_CASE("without a list the order is that of arrival") {
  Membership members(policy(2, 2, 2));
  members.begin(Generation{0}, at_ms(0));
  come(members, 0, -1);
  come(members, 1, -1);
  CHECK(chosen(members, 0) == Agents{0, 1});
}

TEST_CASE("a spare does not take the place of a host that is only late, for a while") {
  Membership members(policy(2, 2, 3));
  members.begin(Generation{0}, at_ms(0));
  come(members, 1, 1);
  come(members, 2, 2);
  CHECK(chosen(members, 29000) == Agents{});
  CHECK(chosen(members, 30000) == Agents{1, 2});
  come(members, 0, 0);
  CHECK(chosen(members, 100) == Agents{0, 1});
}

TEST_CASE("a spare that is late is not waited for") {
  Membership members(policy(2, 2, 3));
  members.begin(Generation{0}, at_ms(0));
  come(members, 0, 0);
  come(members, 1, 1);
  CHECK(chosen(members, 0) == Agents{0, 1});
}

TEST_CASE("a spare that is still on its way takes a lost node's place once it has come") {
  Membership members(policy(2, 2, 3));
  members.begin(Generation{0}, at_ms(0));
  come(members, 0, 0);
  come(members, 1, 1);
  seat(members, {0, 1});
  members.lose(AgentId{1}, at_ms(500));
  CHECK_FALSE(members.enough(at_ms(500)));
  CHECK(members.will_be_enough(at_ms(500)));
  members.begin(Generation{1}, at_ms(500));
  CHECK(chosen(members, 500) == Agents{});
  come(members, 2, 2);
  CHECK(chosen(members, 600) == Agents{0, 2});
  members.lose(AgentId{0}, at_ms(700));
  CHECK_FALSE(members.will_be_enough(at_ms(700)));
}

TEST_CASE("an elastic run starts at once when nobody is missing, else after a while") {
  Membership members(policy(4, 2, 4));
  members.begin(Generation{0}, at_ms(0));
  come(members, 0, 0);
  come(members, 1, 1);
  come(members, 3, 3);
  CHECK(chosen(members, 29999) == Agents{});
  CHECK(chosen(members, 30000) == Agents{0, 1, 3});
  members.fail(2, "host2: no route", at_ms(50));
  CHECK(chosen(members, 100) == Agents{0, 1, 3});
}

TEST_CASE("a node keeps its agent; a spare fills the hole; else nodes move up") {
  Membership members(policy(3, 2, 4));
  members.begin(Generation{0}, at_ms(0));
  for (int i = 0; i < 4; ++i) come(members, i, i);
  CHECK(chosen(members, 0) == Agents{0, 1, 2});
  seat(members, {0, 1, 2});
  members.begin(Generation{1}, at_ms(1000));
  members.lose(AgentId{0}, at_ms(1000));
  CHECK(members.enough(at_ms(1000)));
  CHECK(chosen(members, 1000) == Agents{3, 1, 2});
  seat(members, {3, 1, 2});
  members.lose(AgentId{1}, at_ms(1500));
  CHECK(chosen(members, 1500) == Agents{3, 2});
  seat(members, {3, 2});
  come(members, 10, 0);
  CHECK(chosen(members, 1600) == Agents{3, 2});  // host 0 has to pause
  CHECK(chosen(members, 2000) == Agents{3, 2, 10});
}

TEST_CASE("a host that was lost pauses twice as long each time, unless nobody else is there") {
  Membership members(policy(1, 1, 2));
  come(members, 0, 0);
  come(members, 1, 1);
  members.begin(Generation{1}, at_ms(0));
  members.lose(AgentId{0}, at_ms(0));
  come(members, 2, 0);
  CHECK(chosen(members, 500) == Agents{1});
  CHECK(chosen(members, 1000) == Agents{2});
  members.lose(AgentId{2}, at_ms(1000));
  come(members, 3, 0);
  CHECK(chosen(members, 2900) == Agents{1});
  CHECK(chosen(members, 3000) == Agents{3});
  members.lose(AgentId{1}, at_ms(2000));
  CHECK(chosen(members, 2500) == Agents{3});
}

TEST_CASE("an agent that plays several nodes fills them") {
  Membership members(policy(4, 4, 1));
  members.begin(Generation{0}, at_ms(0));
  CHECK(failure(members, 0) == "");
  come(members, 5, -1, 4);
  CHECK(chosen(members, 0) == Agents{5, 5, 5, 5});
}

TEST_CASE("a command for all agents that fails ends the wait, with spares too") {
  Membership members(policy(2, 2, 3));
  members.begin(Generation{0}, at_ms(0));
  members.fail(-1, "job 7: srun: error: Unable to create step", at_ms(10));
  CHECK(failure(members, 10) == "job 7: srun: error: Unable to create step");
}

TEST_CASE("who has come before the command for all agents ended stays") {
  Membership members(policy(2, 2, 3));
  members.begin(Generation{0}, at_ms(0));
  come(members, 0, 0);
  come(members, 1, 1);
  members.fail(-1, "job 7: srun ended", at_ms(10));
  CHECK(chosen(members, 10) == Agents{0, 1});
}

TEST_CASE("a host that is lost by nobody's fault is taken back at once") {
  Membership members(policy(2, 1, 2));
  members.begin(Generation{0}, at_ms(0));
  come(members, 0, 0);
  come(members, 1, 1);
  seat(members, {0, 1});
  members.lose(AgentId{1}, at_ms(1000), Blame::kCoordinator);
  members.begin(Generation{1}, at_ms(1000));
  members.arrive(AgentId{2}, hello(1), at_ms(1100));
  members.ready(AgentId{2});
  CHECK(chosen(members, 1100) == Agents{0, 2});
}

TEST_CASE("too few can ever come: the reason is told at once") {
  Membership members(policy(3, 3, 3));
  members.begin(Generation{0}, at_ms(0));
  come(members, 0, 0);
  members.fail(2, "host2: permission denied", at_ms(10));
  CHECK(failure(members, 10) == "host2: permission denied");
  members.arrive(AgentId{1}, hello(1), at_ms(0));
  members.refuse(AgentId{1}, "host1 cannot take part: no train", at_ms(20));
  CHECK(failure(members, 20) == "2 hosts cannot take part: host1 cannot take part: no train; host2: permission denied");
}

TEST_CASE("a run that cannot begin waits until all hosts have answered, so that all that fail are named, once") {
  auto patient = policy(4, 4, 4);
  patient.answer_patience = 10s;
  Membership members(patient);
  members.begin(Generation{0}, at_ms(0));
  come(members, 0, 0);
  members.fail(3, "host3: no route", at_ms(10));
  CHECK(members.hopeless());
  CHECK(failure(members, 10) == "");
  CHECK(std::get<WaitForNodes>(members.choose(at_ms(10))).until == at_ms(10010));
  members.fail(1, "host1: refused", at_ms(20));
  CHECK(failure(members, 10009) == "");
  CHECK(failure(members, 10010) == "3 hosts cannot take part: host1: refused; host3: no route; node 2: no answer yet");
  members.fail(2, "host2: timed out", at_ms(8000));
  CHECK(failure(members, 8000) == "3 hosts cannot take part: host1: refused; host2: timed out; host3: no route");
}

TEST_CASE("hosts that failed are told in the order of the list") {
  Membership members(policy(12, 12, 12));
  members.begin(Generation{0}, at_ms(0));
  for (int order : {10, 2, 1}) members.fail(order, "host" + std::to_string(order), at_ms(10));
  CHECK(failure(members, 10) == "3 hosts cannot take part: host1; host2; host10");
}

TEST_CASE("after the timeout the missing ones are named") {
  auto patient = policy(3, 3, 3);
  patient.host_names = {"hosta", "hostb", "hostc"};
  Membership members(patient);
  members.begin(Generation{0}, at_ms(0));
  come(members, 1, 1);
  CHECK(failure(members, 599999) == "");
  CHECK(failure(members, 600000) == "waited 600 s for nodes: 1 of 3 are there; missing: hosta, hostc");
}

TEST_CASE("a lost host is started again after its pause, and again when that fails") {
  Membership members(policy(2, 2, 2));
  come(members, 0, 0);
  come(members, 1, 1);
  members.lose(AgentId{1}, at_ms(0));
  CHECK(members.hosts_to_start(at_ms(999)).empty());
  CHECK(members.next_start() == at_ms(1000));
  CHECK(members.hosts_to_start(at_ms(1000)) == Agents{1});
  CHECK(members.hosts_to_start(at_ms(1001)).empty());
  members.fail(1, "host1: no route", at_ms(1500));
  members.begin(Generation{1}, at_ms(1500));
  CHECK(failure(members, 1500) == "");
  CHECK(members.next_start() == at_ms(3500));
  come(members, 2, 1);
  CHECK_FALSE(members.next_start());
}

TEST_CASE("a host that has stood for a while since its last loss is no bad host") {
  Membership members(policy(2, 2, 2));
  come(members, 0, 0);
  come(members, 1, 1);
  members.lose(AgentId{1}, at_ms(1000));
  CHECK(members.next_start() == at_ms(2000));
  members.arrive(AgentId{2}, hello(1), at_ms(2000));
  members.lose(AgentId{2}, at_ms(3000));
  CHECK(members.next_start() == at_ms(5000));
  members.arrive(AgentId{3}, hello(1), at_ms(5000));
  members.lose(AgentId{3}, at_ms(18000));
  CHECK(members.next_start() == at_ms(19000));
}

}  // namespace membership_test
