// Nodes that die, fall silent, leave or come back, and what that means for the others.
#include <algorithm>

#include "catch.hpp"
#include "run/coordinator_drive.hpp"

namespace coordinator_departures_test {

using namespace taas;
using namespace taas::run;
using namespace std::chrono_literals;

TEST_CASE("a node whose agent dies is replaced by a spare, when nothing can live there any more") {
  Drive run(policy(2, 2, 3));
  run.gather(3);
  CHECK(run.left(1, 1000) == Strings{});
  for (int rank : {0, 1}) run.said(0, RankSpawned{Generation{0}, Rank{rank}, 1, at_ms(1000)}, 1000);
  run.exited(0, 0, 0, kTerminated, 1010);
  CHECK(run.exited(0, 0, 1, kTerminated, 1010) == Strings{"0: sweep"});
  CHECK(run.gone(0, 0, 1020) == Strings{});
  CHECK(run.deadline(1499) == Strings{});
  CHECK(run.deadline(1500) == Strings{"report node 1 (host1) was lost: its agent has ended", "0: abandon", "2: probe"});
  auto started = run.probed(2, 1510);
  CHECK(started ==
        Strings{"0: start 1 node 0 ranks 0-1 of 4 at 10.0.0.0", "2: start 1 node 1 ranks 2-3 of 4 at 10.0.0.0"});
}

TEST_CASE("a silent node is given up, and without a replacement the run ends") {
  Drive run(policy(2, 2, 2));
  run.gather(2);
  run.said(0, Heartbeat{1, at_ms(2400)}, 2400);
  CHECK(run.deadline(2499) == Strings{});
  CHECK(run.deadline(2500) == Strings{"drop 1"});
  run.exited(0, 0, 0, kTerminated, 2510);
  CHECK(run.exited(0, 0, 1, kTerminated, 2510) == Strings{"0: sweep"});
  CHECK(run.gone(0, 0, 2520) ==
        Strings{"report node 1 (host1) was lost: no sign of life for 2.5 s", "0: settle nothing"});
  CHECK(run.said(0, OutputSettled{"", at_ms(2530)}, 2530) == Strings{"0: dismissed 1 ", "finish 1"});
}

TEST_CASE("a node whose link is silent is heard over another connection, and the user is told of both") {
  auto wanted = policy(2, 2, 2);
  wanted.lost_after = 30s;
  Drive run(wanted);
  run.gather(2);
  const auto beat = [&](int agent, long when, const std::string& instance = {}) {
    return run.said(agent, Heartbeat{1, at_ms(when), instance}, when);
  };
  beat(0, 2900);
  run.deadline(3000);
  CHECK(run.silent == std::vector{NodeIndex{1}});
  CHECK(beat(9, 4000, "host1") == Strings{"9: echo"});
  CHECK(run.silence == 0s);
  CHECK(beat(9, 4100, "somebody") == Strings{});
  CHECK(run.left(9, 4200) == Strings{});
  SECTION("the link carries again") {
    beat(1, 8000);
    CHECK(run.silence == 8s);
  }
  SECTION("nothing more is heard") {
    beat(0, 33000);
    CHECK(run.deadline(33999) == Strings{});
    CHECK(run.deadline(34000) == Strings{"drop 1"});
  }
}

TEST_CASE("a node whose link is silent at the end is told how the run ended over another connection") {
  Drive run(policy(1, 1, 1));
  run.gather(1);
  for (int rank : {0, 1}) run.exited(0, 0, rank, {}, 100);
  run.gone(0, 0, 110);
  CHECK(run.said(0, OutputSettled{"", at_ms(120)}, 120) == Strings{"0: dismissed 0 ", "finish 0"});
  CHECK(run.said(9, Heartbeat{7, at_ms(2000), "host0"}, 2000) == Strings{"9: dismissed 0 "});
  CHECK(run.said(9, Heartbeat{7, at_ms(2000), "somebody"}, 2000) == Strings{});
  CHECK_FALSE(run.parted);
  run.deadline(10119);
  CHECK_FALSE(run.parted);
  run.deadline(10120);
  CHECK(run.parted);
}

TEST_CASE("ranks that were killed are not given up while their node does not answer") {
  auto wanted = policy(2, 2, 2);
  wanted.lost_after = 120s;
  Drive run(wanted);
  run.gather(2);
  const bool silent = GENERATE(true, false);
  run.exited(0, 0, 0, {1}, 100);
  run.exited(0, 0, 1, kTerminated, 110);
  run.deadline(30100);  // --shutdown-timeout
  run.gone(0, 0, 30110);
  if (!silent) run.said(1, Heartbeat{1, at_ms(30200)}, 30200);
  const auto gives_up = [](const Strings& decided) {
    return std::any_of(decided.begin(), decided.end(),
                       [](const std::string& line) { return line.ends_with("giving up on them"); });
  };
  bool gave_up = false;
  for (long when = 31000; when < 100'000; when += 500) {
    if (!silent) run.said(1, Heartbeat{2, at_ms(when)}, when);
    gave_up = gives_up(run.deadline(when)) || gave_up;
  }
  CHECK(gave_up != silent);
}

TEST_CASE("an elastic run goes on with fewer nodes") {
  Drive run(policy(3, 2, 3));
  run.gather(3);
  run.left(0, 1000);
  for (int rank : {2, 3}) run.exited(1, 0, rank, kTerminated, 1010);
  for (int rank : {4, 5}) run.exited(2, 0, rank, kTerminated, 1010);
  run.gone(1, 0, 1020);
  run.gone(2, 0, 1020);
  CHECK(run.deadline(1500) == Strings{"report node 0 (host0) was lost: its agent has ended", "1: probe", "2: probe"});
  run.said(1, AddressesReached{{"10.0.0.1"}, 2}, 1510);
  CHECK(run.said(2, AddressesReached{{"10.0.0.1"}, 2}, 1510) ==
        Strings{"1: start 1 node 0 ranks 0-1 of 4 at 10.0.0.1", "2: start 1 node 1 ranks 2-3 of 4 at 10.0.0.1"});
}

TEST_CASE("a node that is told to stop leaves when its ranks have ended, and the others go on") {
  auto wanted = policy(2, 1, 2);
  wanted.nodes_may_leave = true;
  Drive run(wanted);
  run.gather(2);
  for (int rank = 0; rank < 4; ++rank) run.said(rank / 2, RankSpawned{Generation{0}, Rank{rank}, 1, at_ms(5)}, 5);
  const std::string kLeaves = "node 1 (host1) leaves the run: it was told to stop by SIGTERM";
  CHECK(run.said(1, Signalled{SIGTERM}, 1000) == Strings{"say " + kLeaves + ": ranks are told to write a checkpoint",
                                                         "0: checkpoint 0", "1: checkpoint 0", "0: signal 15 to 2",
                                                         "1: signal 15 to 2"});
  for (int rank = 0; rank < 3; ++rank) run.exited(rank / 2, 0, rank, {}, 1010);
  CHECK(run.exited(1, 0, 3, kTerminated, 1020) == Strings{"0: sweep", "1: sweep"});
  run.gone(1, 0, 1030);
  CHECK(run.gone(0, 0, 1040) == Strings{"report " + kLeaves, "0: abandon",
                                        "1: dismissed 143 SIGTERM: the run goes on without this node",
                                        "0: start 1 node 0 ranks 0-1 of 2 at 10.0.0.0"});
  CHECK(run.left(1, 1060) == Strings{});
}

TEST_CASE("a node that was left over leaves at once, and one that the run needs ends it") {
  auto wanted = policy(2, 2, 3);
  wanted.nodes_may_leave = true;
  Drive run(wanted);
  run.gather(3);
  run.said(0, RankSpawned{Generation{0}, Rank{0}, 1, at_ms(5)}, 5);
  CHECK(run.said(2, Signalled{SIGTERM}, 1000) ==
        Strings{"say host2 leaves: it was told to stop by SIGTERM",
                "2: dismissed 143 SIGTERM: the run goes on without this node"});
  CHECK(run.said(1, Signalled{SIGTERM}, 1100).back() == "0: signal 15 to 1");
  CHECK(run.said(1, Signalled{SIGTERM}, 1200) == Strings{});
}

TEST_CASE("an agent that connects again takes the place of its former connection") {
  auto wanted = policy(1, 1, 1);
  wanted.run.max_restarts = 1;
  Drive run(wanted);
  run.gather(1);
  CHECK(run.arrive(7, hello(0), 500) ==
        Strings{"drop 0",
                "report node 0 (host0) was lost: it lost its connection; where a network stalls or answers late, "
                "--node-timeout has to be larger",
                "7: welcome"});
  CHECK(run.gone(0, 0, 510) == Strings{});  // not heard any more
}

TEST_CASE("a coordinator that did not run blames nobody for it") {
  Drive run(policy(2, 2, 2));
  run.gather(2);
  run.said(0, Heartbeat{1, at_ms(1000)}, 1000);
  run.said(1, Heartbeat{1, at_ms(1000)}, 1000);
  CHECK(run.feed(CoordinatorStalled{3s, at_ms(4000)}) ==
        Strings{"say the coordinator did not run for 3.0 s: was its machine busy or suspended?"});
  CHECK(run.deadline(4100) == Strings{});
  run.arrive(7, hello(1), 4200);  // it had given the coordinator up
  run.exited(0, 0, 0, kTerminated, 4210);
  run.exited(0, 0, 1, kTerminated, 4210);
  auto decided = run.gone(0, 0, 4220);
  CHECK(std::find(decided.begin(), decided.end(),
                  "report node 1 (host1) was lost: the coordinator had not answered it for 3.0 s") != decided.end());
}

TEST_CASE(
    "of a host that was lost the agent that is started again and the former one may both come, and nobody reads it") {
  Drive run(policy(2, 1, 2));
  run.gather(2);
  run.left(1, 1000);
  run.deadline(2000);  // starts it again
  auto former = hello(1), fetched = hello(1);
  fetched.instance = "fetched";
  run.arrive(2, former, 2100);
  CHECK(run.arrive(3, fetched, 2200) == Strings{"3: dismissed 2 host1 is node 1 already"});
}

TEST_CASE("output on a node that is lost is not waited for") {
  Drive run(policy(1, 1, 1));
  run.gather(1);
  run.exited(0, 0, 0, {}, 100);
  run.exited(0, 0, 1, {}, 100);
  CHECK(run.gone(0, 0, 110) == Strings{"0: settle"});
  CHECK(run.left(0, 120) == Strings{"finish 1"});
}

TEST_CASE("a lost host is started again") {
  Drive run(policy(1, 1, 2));
  run.gather(2);
  run.left(1, 1000);
  CHECK(run.deadline(2000) == Strings{"start agent 1"});
}

}  // namespace coordinator_departures_test
