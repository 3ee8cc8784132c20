#include "run/coordinator/loader_wait.hpp"

#include "catch.hpp"
#include "coordinator_parts.hpp"

namespace loader_wait_test {

using namespace taas;
using namespace taas::run;
using namespace std::chrono_literals;

namespace {

/// `machines` CPU machines; without any they are simulated.
struct Waiting : Parts {
  explicit Waiting(int machines, std::string wanted = "data:train") : Parts(with(machines, std::move(wanted))) {}

  static CoordinatorPolicy with(int machines, std::string wanted) {
    auto made = run::policy(1, 1, 1);
    made.data = {machines, 1, {"alpha", "beta"}};
    made.loader = std::move(wanted);
    made.gather_timeout = 10s;
    return made;
  }
  void machine(int order) {
    nodes.arrive(AgentId{order}, hello(order));
    nodes.ready(AgentId{order}, {50});
  }

  DataNodes nodes{policy.data};
  LoaderWait loader{policy, nodes, decisions};
};

}  // namespace

TEST_CASE("without a loader nothing is waited for") {
  Waiting run(1, "");
  CHECK(run.loader.check(at_ms(0)).prepared);
  CHECK(run.loader.workers_are_known());
  CHECK(run.loader.hopeless().empty());
}

TEST_CASE("ranks wait for every machine, and the user is told once") {
  Waiting run(2);
  run.machine(1);
  CHECK_FALSE(run.loader.workers_are_known());
  auto first = run.loader.check(at_ms(0));
  CHECK_FALSE(first.prepared);
  CHECK(first.ask_again_at == at_ms(10000));
  run.loader.check(at_ms(0));
  CHECK(run.decided() == Strings{"say preparing data:train before ranks start"});
  run.machine(2);
  CHECK(run.loader.workers_are_known());
  CHECK_FALSE(run.loader.check(at_ms(0)).ask_again_at.has_value());
  for (int i : {1, 2}) run.nodes.prepared(AgentId{i});
  CHECK(run.loader.check(at_ms(0)).prepared);
  CHECK(run.decided() == Strings{"say prepared data:train: 0 batches, 0.0 MB"});
}

TEST_CASE("machines that do not come are named in the end") {
  Waiting run(2);
  run.machine(1);
  run.at(10000);
  CHECK(run.loader.check(at_ms(0)).failure == "--loader data:train: CPU machines are missing: beta");
}

TEST_CASE("simulated machines prepare a loader as one") {
  Waiting run(0);
  CHECK_FALSE(run.loader.check(at_ms(0)).prepared);
  run.loader.prepared(AgentId{0});
  CHECK(run.loader.check(at_ms(0)).prepared);
  run.loader.forget(AgentId{0});
  CHECK_FALSE(run.loader.check(at_ms(0)).prepared);
}

TEST_CASE("progress is told every ten seconds, while ranks wait") {
  Waiting run(1);
  run.loader.check(at_ms(0));
  run.decided();
  run.at(9999);
  run.loader.on({0, 1, 1000000, false, at_ms(9999)}, true);
  CHECK(run.decided().empty());
  run.at(10000);
  run.loader.on({0, 3, 2000000000, false, at_ms(10000)}, true);
  CHECK(run.decided() == Strings{"say preparing data:train: 3 batches, 2.00 GB so far"});
  run.at(30000);
  run.loader.on({0, 4, 2000000000, false, at_ms(30000)}, false);
  CHECK(run.decided().empty());
}

TEST_CASE("a loader without any machine left cannot be prepared") {
  Waiting run(1);
  run.nodes.fail(1);
  CHECK(run.loader.hopeless() == "--loader data:train: no CPU machine is there to prepare it");
}

}  // namespace loader_wait_test
