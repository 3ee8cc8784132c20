#include <csignal>

#include "catch.hpp"
#include "run/coordinator_drive.hpp"

// Nodes that come from a queue, once CPU machines have prepared the loader.
namespace coordinator_staged_test {

using namespace taas;
using namespace taas::run;
using namespace std::chrono_literals;

namespace {

constexpr long kDay = 86'400'000;

/// Nodes of ranks, and CPU machines 1 and 2 beside them.
CoordinatorPolicy staged(int nodes = 1) {
  auto made = policy(nodes, nodes, nodes);
  made.data = {2, nodes, {}};
  made.loader = "data:train";
  made.nodes_are_held = true;
  made.gather_timeout = 10s;
  made.lost_after = 10'000h;  // heartbeats are another test's
  return made;
}

Hello machine(int order) {
  auto made = hello(order);
  made.role = AgentRole::kData;
  return made;
}

/// CPU machines are agents 11 and 12.
void machines_come(Drive& run, int first_order, long when) {
  for (int i : {0, 1}) {
    run.arrive(11 + i, machine(first_order + i), when);
    run.said(11 + i, Ready{0, {static_cast<std::uint16_t>(50 + i)}}, when);
  }
}

void release(Drive& run, long when) {
  machines_come(run, 1, when);
  run.said(11, LoaderPrepared{}, when);
  CHECK(run.said(12, LoaderPrepared{}, when).back() == "release nodes");
}

std::string all(const Strings& decided) { return fmt::format("{}", fmt::join(decided, "|")); }

}  // namespace

TEST_CASE("nodes are released when every CPU machine has prepared the loader, and ranks start when they come") {
  Drive run(staged());
  machines_come(run, 1, kDay);
  CHECK(run.said(11, LoaderPrepared{}, kDay) == Strings{});
  CHECK(run.said(12, LoaderPrepared{}, kDay) == Strings{"say prepared data:train: 0 batches, 0.0 MB", "release nodes"});
  CHECK(run.deadline(3 * kDay) == Strings{});  // a queue may be long
  run.arrive(0, hello(0), 3 * kDay);
  run.said(0, Ready{4711}, 3 * kDay);
  CHECK(run.probed(0, 3 * kDay) == Strings{"0: start 0 node 0 ranks 0-1 of 2 at 10.0.0.0"});
}

TEST_CASE("from the first node on the others are waited for as usual") {
  Drive run(staged(2));
  machines_come(run, 2, 0);
  run.said(11, LoaderPrepared{}, 0);
  run.said(12, LoaderPrepared{}, 0);
  run.arrive(0, hello(0), kDay);
  run.said(0, Ready{4711}, kDay);
  CHECK(run.deadline(kDay + 9999) == Strings{});
  CHECK(all(run.deadline(kDay + 10000)).find("waited 10 s for nodes: 1 of 2 are there; missing: node 1") !=
        std::string::npos);
}

TEST_CASE("nodes that come before the loader is prepared wait for it") {
  Drive run(staged());
  run.arrive(0, hello(0), 0);
  run.said(0, Ready{4711}, 0);
  CHECK(run.probed(0, 0) == Strings{});
  machines_come(run, 1, kDay);
  run.said(11, LoaderPrepared{}, kDay);
  CHECK(run.said(12, LoaderPrepared{}, kDay) == Strings{"say prepared data:train: 0 batches, 0.0 MB", "release nodes",
                                                        "0: start 0 node 0 ranks 0-1 of 2 at 10.0.0.0"});
}

TEST_CASE("of CPU machines from a queue the others are waited for from the first one on") {
  Drive run(staged());
  CHECK(run.deadline(kDay) == Strings{});
  run.arrive(11, machine(1), kDay);
  run.said(11, Ready{0, {50}}, kDay);
  CHECK(run.deadline(kDay + 9999) == Strings{});
  auto decided = run.deadline(kDay + 10000);
  CHECK(decided.back() == "finish 2");
  CHECK(all(decided).find("--loader data:train: CPU machines are missing: CPU machine 1") != std::string::npos);
}

TEST_CASE("a run ends with the job that its nodes would come from") {
  Drive run(staged());
  release(run, 0);
  auto decided = run.feed(NodesOver{"job 17 is over", at_ms(5)});
  CHECK(decided.front() == "report job 17 is over");
  CHECK(decided.back() == "finish 2");
}

TEST_CASE("the end of that job is nothing new while its nodes are there") {
  Drive run(staged());
  release(run, 0);
  run.gather(1);
  CHECK(run.feed(NodesOver{"job 17 is over", at_ms(5)}) == Strings{});
}

TEST_CASE("a CPU machine whose job ends leaves, and the run goes on") {
  Drive run(staged());
  machines_come(run, 1, 0);
  auto decided = run.said(11, Signalled{SIGTERM}, 10);
  CHECK(decided == Strings{"say CPU machine host1 was lost: SLURM sent SIGTERM; the others go on",
                           "11: dismissed 143 its job ends", "12: workers - 51"});
  run.arrive(13, machine(1), 20);
  CHECK(run.said(13, Ready{0, {60}}, 20) == Strings{"12: workers 60 51", "13: workers 60 51"});
  run.said(12, LoaderPrepared{}, 30);
  CHECK(run.said(13, LoaderPrepared{}, 30).back() == "release nodes");
}

TEST_CASE("a warning to CPU machines is none to ranks") {
  Drive run(staged());
  release(run, 0);
  run.gather(1);
  CHECK(run.said(11, Signalled{SIGUSR2}, 10) == Strings{});
}

TEST_CASE("without any CPU machine the run ends before ranks start, once none can come") {
  Drive run(staged());
  release(run, 0);
  for (int agent : {11, 12}) run.left(agent, 10);
  auto decided = run.feed(HostFailed{kEveryDataNode, "job 18 is over", at_ms(20)});
  CHECK(decided.front() == "say job 18 is over");
  CHECK(decided[1] == "report --loader data:train: no CPU machine is left, and what was prepared is gone with them");
  CHECK(decided.back() == "finish 2");
}

TEST_CASE("without any CPU machine ranks are told to stop") {
  Drive run(staged());
  release(run, 0);
  run.gather(1);
  run.said(11, Signalled{SIGTERM}, 10);
  CHECK(all(run.said(12, Signalled{SIGTERM}, 10)).find("checkpoint") == std::string::npos);  // SLURM may requeue them
  auto decided = run.feed(HostFailed{kEveryDataNode, "job 18 is over", at_ms(20)});
  CHECK(decided == Strings{"say job 18 is over", "0: workers - -",
                           "say no CPU machine is left to make batches: the run is stopped",
                           "say SIGTERM: stopping all ranks; once more kills them", "0: checkpoint 0"});
}

}  // namespace coordinator_staged_test
