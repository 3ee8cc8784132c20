// When another generation begins, with which nodes, and when none does.
#include "catch.hpp"
#include "run/scenario.hpp"
#include "run/supervisor/supervisor.hpp"
#include "supervisor_drive.hpp"

namespace supervisor_restarts_test {

using namespace taas;
using namespace taas::run;
using supervisor_drive::Drive;
using supervisor_drive::kTerminated;
using supervisor_drive::Strings;

namespace {

NodeLost lost(int node, long when, bool replaceable) {
  return {Generation{0}, NodeIndex{node}, "hostb", "no sign of life for 2.5 s", at_ms(when), replaceable, at_ms(when)};
}

}  // namespace

TEST_CASE("a restart begins in the instant in which the last process is gone, as often as allowed") {
  Drive run(policy_for(2, 1));
  run.begin();
  run.exited(1, 1000, {4});
  run.exited(0, 1001, kTerminated);
  CHECK(run.gone(1002) == Strings{"report rank 1 exited with code 4, restarting", "start 1"});
  run.generation = Generation{1};
  run.spawn_all();
  CHECK(run.exited(0, 2000, {5}) == Strings{"SIGTERM to 1"});
  run.exited(1, 2001, kTerminated);
  CHECK(run.gone(2002).front() == "report rank 0 exited with code 5");
  CHECK(run.settled(2003).back() == "finish 5 rank 0 exited with code 5");
}

TEST_CASE("a restart that cures ends well") {
  Drive run(policy_for(1, 1));
  run.begin();
  run.exited(0, 1000, {4});
  run.gone(1001);
  run.generation = Generation{1};
  run.spawn_all();
  run.exited(0, 2000);
  run.gone(2001);
  CHECK(run.settled(2002).back() == "finish 0 ");
}

TEST_CASE("events of a former generation change nothing") {
  Drive run(policy_for(2, 1));
  run.begin();
  run.exited(1, 1000, {4});
  run.exited(0, 1001, kTerminated);
  run.gone(1002);
  run.generation = Generation{1};
  run.spawn_all();
  run.generation = Generation{0};
  CHECK(run.exited(0, 1100, {1}) == Strings{});
  CHECK(run.unspawned(0, 1100) == Strings{});
  CHECK(run.gone(1100) == Strings{});
  CHECK(run.joined(0, 1100) == Strings{});
}

TEST_CASE("a program that cannot be executed is not tried again, and unstarted ranks are not waited for") {
  Drive run(policy_for(3, 5));
  run.start();
  run.spawned(0);
  CHECK(run.unspawned(1, 10) == Strings{"SIGTERM to 0"});
  CHECK(run.exited(0, 20, kTerminated) == Strings{"sweep SIGTERM"});
  CHECK(run.gone(21) == Strings{"report cannot execute ./x: no such file", "settle nothing"});
  CHECK(run.settled(30).back() == "finish 127 cannot execute ./x: no such file");
}

TEST_CASE("nodes are asked for before each generation, and bring the world with them") {
  Drive run(policy_for(2, 1), false);
  CHECK(run.start() == Strings{"gather 0"});
  CHECK(run.gathered(10) == Strings{"start 0"});
  run.spawn_all();
  run.exited(0, 1000, {3});
  run.exited(1, 1001, kTerminated);
  CHECK(run.gone(1002) == Strings{"report rank 0 exited with code 3, restarting", "gather 1"});
  CHECK(run.feed(NodesGathered{1, {NodeIndex{0}}, {}, at_ms(1010)}) == Strings{"start 1"});
  run.generation = Generation{1};
  run.spawned(0);
  CHECK(run.exited(0, 2000) == Strings{"await leftovers"});
}

TEST_CASE("a run without enough nodes ends with what is missing") {
  Drive run(policy_for(2), false);
  run.start();
  CHECK(run.feed(GatherFailed{"hostb cannot be reached", "", 2, at_ms(10)}) ==
        Strings{"report hostb cannot be reached", "finish 2 hostb cannot be reached"});
}

TEST_CASE("a lost node stops the others, and costs no restart when it can be replaced") {
  Drive run(policy_for(4, 0, 2));
  run.begin();
  CHECK(run.feed(lost(1, 1000, true)) == Strings{"SIGTERM to 0,1"});
  run.exited(0, 1010, kTerminated);
  CHECK(run.exited(1, 1010, kTerminated) == Strings{"sweep SIGTERM"});
  CHECK(run.gone(1020) == Strings{"report node 1 (hostb) was lost: no sign of life for 2.5 s, restarting", "start 1"});
}

TEST_CASE("a lost node that cannot be replaced ends a run without restarts, with code 1") {
  Drive run(policy_for(4, 0, 2));
  run.begin();
  run.feed(lost(0, 1000, false));
  run.exited(2, 1010, kTerminated);
  run.exited(3, 1010, kTerminated);
  CHECK(run.gone(1020) == Strings{"report node 0 (hostb) was lost: no sign of life for 2.5 s", "settle nothing"});
  CHECK(run.settled(1030).back() == "finish 1 node 0 (hostb) was lost: no sign of life for 2.5 s");
}

TEST_CASE("a node on which all ranks had ended well is no loss") {
  Drive run(policy_for(4, 0, 2));
  run.begin();
  run.exited(2, 900);
  run.exited(3, 900);
  CHECK(run.feed(lost(1, 1000, false)) == Strings{});
}

TEST_CASE("the next generation begins after the pause, and a stop ends the run at once while it lasts") {
  auto policy = policy_for(1, 5);
  policy.restart_interval = std::chrono::seconds(3);
  Drive run(policy);
  run.begin();
  run.exited(0, 1000, {4});
  CHECK(run.gone(1000) == Strings{"report rank 0 exited with code 4, restarting"});
  CHECK(run.due == at_ms(3000));
  CHECK(run.time_is_up() == Strings{"start 1"});
  run.generation = Generation{1};
  run.spawn_all();
  run.exited(0, 4000, {4});
  run.gone(4000);
  CHECK(run.signal(SIGTERM, 4500) == Strings{"settle nothing"});
  CHECK(run.settled(4600).back() == "finish 143 stopped by SIGTERM");
}

TEST_CASE("of failures that are alike the log files of those in the middle go") {
  Supervisor supervisor(policy_for(1, 10));
  supervisor.handle(RunStarted{at_ms(0)});
  std::vector<int> folded;
  for (int number = 0; number < 6; ++number) {
    for (const auto& action : supervisor.handle(NodesGathered{1, {NodeIndex{0}}, {}, at_ms(number)})) {
      if (const auto* start = std::get_if<StartGeneration>(&action)) folded.push_back(start->folded.value);
    }
    supervisor.handle(RankExited{Generation{number}, Rank{0}, {3}, {}, at_ms(number)});
    supervisor.handle(GenerationGone{Generation{number}, at_ms(number)});
  }
  CHECK(folded == std::vector<int>{-1, -1, -1, -1, 2, 3});
}

TEST_CASE("a lost node that can be replaced is not counted among the restarts") {
  Supervisor supervisor(policy_for(1, 1));
  supervisor.handle(RunStarted{at_ms(0)});
  supervisor.handle(NodesGathered{1, {NodeIndex{0}}, {}, at_ms(0)});
  supervisor.handle(NodeLost{Generation{0}, NodeIndex{0}, "hosta", "gone", at_ms(1), true, at_ms(2)});
  auto lost = supervisor.handle(GenerationGone{Generation{0}, at_ms(3)});
  supervisor.handle(NodesGathered{1, {NodeIndex{0}}, {}, at_ms(4)});
  supervisor.handle(RankExited{Generation{1}, Rank{0}, {3}, {}, at_ms(5)});
  auto failed = supervisor.handle(GenerationGone{Generation{1}, at_ms(6)});
  CHECK(std::get<ReportFailure>(lost.front()).restart == 0);
  CHECK(std::get<ReportFailure>(failed.front()).restart == 1);
}

}  // namespace supervisor_restarts_test
