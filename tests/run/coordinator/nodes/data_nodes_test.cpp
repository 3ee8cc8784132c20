#include "run/coordinator/nodes/data_nodes.hpp"

#include "catch.hpp"
#include "run/scenario.hpp"

namespace data_nodes_test {

using namespace taas;
using namespace taas::run;
using namespace std::chrono_literals;

namespace {

Hello hello(int order, const std::string& instance = "") {
  Hello made;
  made.hostname = "cpu" + std::to_string(order);
  made.instance = instance.empty() ? made.hostname : instance;
  made.order = order;
  made.addresses = {"10.0.1." + std::to_string(order)};
  made.role = AgentRole::kData;
  return made;
}

DataNodes nodes_of(int count) { return DataNodes({count, 4, {"alpha", "beta", "gamma"}}); }

std::vector<int> ports(const DataNodes& nodes) {
  std::vector<int> ports;
  for (const auto& worker : nodes.list().workers) ports.push_back(worker.addresses.empty() ? 0 : worker.port);
  return ports;
}

}  // namespace

TEST_CASE("workers are listed in the order in which their machines came") {
  auto nodes = nodes_of(2);
  nodes.arrive(AgentId{1}, hello(5));
  CHECK(nodes.list().workers.empty());
  nodes.ready(AgentId{1}, {50, 51});
  nodes.arrive(AgentId{2}, hello(4));
  nodes.ready(AgentId{2}, {40});
  REQUIRE(nodes.list().workers.size() == 3);
  CHECK(ports(nodes) == std::vector<int>{50, 51, 40});
  CHECK(nodes.list().workers[1].name == "data worker 1 (beta)");
  CHECK(nodes.list().workers[2].name == "data worker 2 (alpha)");
  CHECK(nodes.list().workers[2].addresses == std::vector<std::string>{"10.0.1.4"});
  CHECK(nodes.settled());
}

TEST_CASE("a lost machine leaves its places, and takes them again") {
  auto nodes = nodes_of(2);
  for (int order : {4, 5}) {
    nodes.arrive(AgentId{order}, hello(order));
    nodes.ready(AgentId{order}, {static_cast<std::uint16_t>(10 * order)});
  }
  nodes.lose(AgentId{4}, at_ms(0));
  CHECK(ports(nodes) == std::vector<int>{0, 50});
  CHECK_FALSE(nodes.has(AgentId{4}));
  nodes.arrive(AgentId{9}, hello(4, "another process"));
  nodes.ready(AgentId{9}, {44});
  CHECK(ports(nodes) == std::vector<int>{44, 50});
  CHECK(nodes.list().workers[0].node == "another process");
}

TEST_CASE("a lost machine is started again after a pause that doubles") {
  auto nodes = nodes_of(1);
  nodes.arrive(AgentId{0}, hello(4));
  nodes.ready(AgentId{0}, {40});
  nodes.lose(AgentId{0}, at_ms(1000));
  CHECK(nodes.next_start() == at_ms(2000));
  CHECK(nodes.hosts_to_start(at_ms(1999)).empty());
  CHECK(nodes.hosts_to_start(at_ms(2000)) == std::vector<int>{4});
  CHECK(nodes.next_start() == at_ms(4000));
  nodes.arrive(AgentId{1}, hello(4));
  CHECK_FALSE(nodes.next_start());
}

TEST_CASE("who is waited for") {
  auto nodes = nodes_of(3);
  CHECK(nodes.missing() == "alpha, beta, gamma");
  nodes.fail(6);
  nodes.arrive(AgentId{0}, hello(4));
  nodes.arrive(AgentId{1}, hello(5));
  CHECK_FALSE(nodes.settled());
  nodes.ready(AgentId{0}, {40});
  CHECK(nodes.missing() == "beta");
  nodes.refuse(AgentId{1});
  CHECK(nodes.settled());
  CHECK_FALSE(nodes.none_left());
  CHECK_FALSE(nodes.all_prepared());
  nodes.prepared(AgentId{0});
  CHECK(nodes.all_prepared());
}

TEST_CASE("a machine that was there is not given up") {
  auto nodes = nodes_of(1);
  nodes.arrive(AgentId{0}, hello(4));
  nodes.ready(AgentId{0}, {40});
  nodes.lose(AgentId{0}, at_ms(0));
  nodes.fail(4);
  CHECK_FALSE(nodes.none_left());
  auto never = nodes_of(1);
  never.fail(4);
  CHECK(never.none_left());
}

TEST_CASE("orders of CPU machines follow those of nodes") {
  auto nodes = nodes_of(2);
  CHECK_FALSE(nodes.owns_order(3));
  CHECK(nodes.owns_order(4));
  CHECK(nodes.owns_order(5));
  CHECK_FALSE(nodes.owns_order(6));
  CHECK_FALSE(nodes_of(0).owns_order(4));
  CHECK_FALSE(nodes_of(0).owns_order(kEveryDataNode));
  nodes.arrive(AgentId{0}, hello(4));
  nodes.ready(AgentId{0}, {40});
  nodes.fail(kEveryDataNode);  // the command ended: who has come stays
  CHECK(nodes.settled());
  CHECK_FALSE(nodes.none_left());
}

}  // namespace data_nodes_test
