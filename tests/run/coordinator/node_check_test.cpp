#include "run/coordinator/node_check.hpp"

#include "catch.hpp"
#include "run/coordinator_drive.hpp"

namespace node_check_test {

using namespace taas;
using namespace taas::run;

namespace {

CoordinatorPolicy checking(Check check) {
  auto made = policy(2, 2, 2);
  made.check = check;
  return made;
}

/// Two nodes are there.
void come(Drive& run) {
  for (int i = 0; i < 2; ++i) {
    run.arrive(i, hello(i), 1);
    const auto decided = run.said(i, Ready{4711}, 2);
    CHECK(decided == (i == 0 ? Strings{} : Strings{"0: examine", "1: examine"}));
  }
}

NodeExamined examined(const std::string& torch = "2.9.1") {
  NodeExamined message;
  message.facts.program.python = "3.11.2";
  message.facts.program.torch = torch;
  message.port = 5000;
  message.at = at_ms(3);
  return message;
}

}  // namespace

TEST_CASE("ranks start once the nodes have been looked at and reach each other") {
  Drive run(checking(Check::kFirst));
  come(run);
  CHECK(run.said(1, examined(), 3) == Strings{});
  CHECK(run.said(0, examined(), 4) == Strings{"0: reach 1", "1: reach 1"});
  CHECK(run.said(0, NodesReached{}, 5) == Strings{});
  CHECK(run.said(1, NodesReached{}, 6) == Strings{"nodes checked, 0 findings", "0: probe", "1: probe"});
  run.probed(0, 7);
  CHECK(run.probed(1, 7).size() == 2);
}

TEST_CASE("ranks do not start where something is wrong, and the run's end says what") {
  Drive run(checking(Check::kFirst));
  come(run);
  run.said(0, examined("2.8.0"), 3);
  run.said(1, examined(), 3);
  run.said(0, NodesReached{}, 4);
  const auto decided = run.said(1, NodesReached{{"host0: no connection to port 5000 of 10.0.0.0"}}, 5);
  REQUIRE(decided.size() > 1);
  CHECK(decided.front() == "nodes checked, 2 findings");
  CHECK(decided.back() == "finish 2");
}

TEST_CASE("where nodes are only looked at, the run ends with what was found") {
  Drive run(checking(Check::kOnly));
  come(run);
  run.said(0, examined(), 3);
  run.said(1, examined(), 3);
  run.said(0, NodesReached{}, 4);
  CHECK(run.said(1, NodesReached{}, 5) ==
        Strings{"nodes checked, 0 findings", "0: dismissed 0 ", "1: dismissed 0 ", "finish 0"});
}

TEST_CASE("where nodes are only looked at, CPU machines are, too") {
  auto wanted = checking(Check::kOnly);
  wanted.data.nodes = 2;
  wanted.data.first_order = 2;
  wanted.data.names = {"c", "d"};
  Drive run(wanted);
  for (int i = 0; i < 2; ++i) {
    run.arrive(i, hello(i), 1);
    CHECK(run.said(i, Ready{4711}, 2).size() < 2);
  }
  auto machine = hello(2);
  machine.role = AgentRole::kData;
  run.arrive(2, machine, 3);
  SECTION("all that come") {
    CHECK(run.said(2, Ready{}, 4).back() == "2: workers ");
    auto other = hello(3);
    other.role = AgentRole::kData;
    run.arrive(3, other, 5);
    const auto decided = run.said(3, Ready{}, 6);
    REQUIRE(decided.size() == 8);
    CHECK(Strings(decided.begin() + 4, decided.end()) ==
          Strings{"0: examine", "1: examine", "2: examine", "3: examine"});
  }
  SECTION("one that cannot be had is a finding") {
    run.said(2, Ready{}, 4);
    CHECK(run.feed(HostFailed{3, "d: connection refused", at_ms(5)}).back() == "2: examine");
    for (int i = 0; i < 3; ++i) run.said(i, examined(), 6);
    for (int i = 0; i < 2; ++i) run.said(i, NodesReached{}, 7);
    const auto decided = run.said(2, NodesReached{}, 7);
    CHECK(decided.front() == "nodes checked, 1 findings");
    CHECK(decided.back() == "finish 1");
  }
}

TEST_CASE("that there are too few nodes is a finding beside those of the nodes that are there") {
  Drive run(checking(Check::kOnly));
  run.arrive(0, hello(0), 1);
  run.said(0, Ready{}, 2);
  CHECK(run.feed(HostFailed{1, "host1: connection refused", at_ms(3)}).back() == "0: examine");
  auto poor = examined();
  poor.facts.program.problem = "train.py: no such file";
  CHECK(run.said(0, poor, 4) == Strings{"nodes checked, 2 findings", "0: dismissed 1 ", "finish 1"});
}

TEST_CASE("where no node is there at all, the check ends with that") {
  Drive run(checking(Check::kOnly));
  const auto decided = run.feed(HostFailed{0, "host0: connection refused", at_ms(3)});
  REQUIRE_FALSE(decided.empty());
  CHECK(decided.back() == "finish 1");
}

TEST_CASE("a node that does not answer is named, and nobody waits for it for ever") {
  Drive run(checking(Check::kOnly));
  come(run);
  run.said(0, examined(), 3);
  for (long when = 1000; when < 20000; when += 1000) {
    run.said(0, Heartbeat{1, at_ms(when)}, when);
    run.said(1, Heartbeat{1, at_ms(when)}, when);
    CHECK(run.deadline(when) == Strings{});
  }
  run.said(1, Heartbeat{1, at_ms(20000)}, 20000);
  run.said(0, Heartbeat{1, at_ms(20000)}, 20000);
  const auto decided = run.deadline(20002);
  REQUIRE_FALSE(decided.empty());
  CHECK(decided.front() == "nodes checked, 1 findings");
  CHECK(decided.back() == "finish 1");
}

TEST_CASE("a node that is lost meanwhile is not waited for, and who comes in its place is looked at") {
  Drive run(checking(Check::kFirst));
  come(run);
  run.said(0, examined(), 3);
  run.left(1, 4);
  auto again = hello(1);
  again.instance = "another process";
  run.arrive(2, again, 5);
  CHECK(run.said(2, Ready{4711}, 6) == Strings{"0: examine", "2: examine"});
}

TEST_CASE("where nodes are only looked at, the others are what was found") {
  Drive run(checking(Check::kOnly));
  come(run);
  run.said(0, examined(), 3);
  CHECK(run.left(1, 4).back() == "finish 1");
}

TEST_CASE("answers that nobody asked for are not heard") {
  Drive run(checking(Check::kNone));
  run.gather(2);
  CHECK(run.said(0, examined(), 3) == Strings{});
  CHECK(run.said(0, NodesReached{{"x"}}, 3) == Strings{});
}

}  // namespace node_check_test
