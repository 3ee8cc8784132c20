#include "run/supervisor/supervisor.hpp"

#include "catch.hpp"
#include "run/scenario.hpp"
#include "supervisor_drive.hpp"

namespace supervisor_test {

using namespace taas;
using namespace taas::run;
using supervisor_drive::Drive;
using supervisor_drive::kKilled;
using supervisor_drive::kTerminated;
using supervisor_drive::Strings;

TEST_CASE("a run without trouble") {
  Drive run(policy_for(2));
  CHECK(run.begin() == Strings{"start 0"});
  CHECK(run.exited(0, 1000) == Strings{});
  CHECK(run.exited(1, 1500) == Strings{"await leftovers"});
  CHECK(run.gone(1501) == Strings{"settle"});
  CHECK(run.settled(1600) == Strings{"finish 0 "});
}

TEST_CASE("how long is waited in each state of a run") {
  Drive run(policy_for(2));
  run.begin();
  run.joined(0, 500);
  CHECK(run.due == at_ms(500 + 15000));
  run.joined(1, 600);
  run.exited(0, 1000);
  CHECK(run.due == at_ms(1000 + 30000));  // the other one is named
  run.exited(1, 1500);
  CHECK(run.due == at_ms(1500) + Policy().leftover_timeout);
  run.signal(SIGTERM, 1600);
  CHECK(run.due == at_ms(1600) + Policy().shutdown_timeout);
  run.signal(SIGTERM, 2000);
  CHECK(run.due == at_ms(2000 + 1000));  // killed once more
  run.gone(2100);
  CHECK(run.due == at_ms(2100 + 30000));  // slow output is mentioned
  run.settled(2200);
  CHECK_FALSE(run.due);
}

TEST_CASE("after a timeout the others may time out too, so that the report can name who did not") {
  const auto times_out = [](Drive& run, int rank, long when) {
    auto evidence = raised("RuntimeError: [buffer.cc:78] Timed out waiting 3000ms for recv operation", when);
    evidence.stderr_path = fmt::format("/r/{}.err", rank);
    return run.feed(RankExited{run.generation, Rank{rank}, {1}, evidence, at_ms(when)});
  };
  Drive run(policy_for(4));
  run.begin();
  CHECK(times_out(run, 2, 3000) == Strings{});
  CHECK(run.due == at_ms(4000));
  CHECK(times_out(run, 0, 3010) == Strings{});
  CHECK(run.feed(RankExited{run.generation, Rank{3}, {1}, lost_peer(3020), at_ms(3020)}) == Strings{});
  CHECK(run.time_is_up() == Strings{"SIGTERM to 1"});

  Drive failing(policy_for(3));
  failing.begin();
  times_out(failing, 2, 3000);
  CHECK(failing.exited(0, 3010, {5}) == Strings{"SIGTERM to 1"});

  Drive told(policy_for(2));
  told.begin();
  times_out(told, 0, 3000);
  CHECK(told.signal(SIGINT, 3010) == Strings{"SIGTERM to 1", "say SIGINT: killing what is left", "kill"});
  CHECK(told.exited(1, 3020, kKilled) == Strings{});
  CHECK(told.gone(3030).front() ==
        "report rank 0 raised RuntimeError: [buffer.cc:78] Timed out waiting 3000ms for recv operation");

  Drive all(policy_for(2));
  all.begin();
  times_out(all, 0, 3000);
  CHECK(times_out(all, 1, 3010) == Strings{"sweep SIGTERM"});
  CHECK(all.due == at_ms(3010) + Policy().shutdown_timeout);
}

TEST_CASE("what ranks leave behind is waited for, then told to end, then killed, and the run has succeeded") {
  Drive run(policy_for(1));
  run.begin();
  CHECK(run.exited(0, 1000) == Strings{"await leftovers"});
  CHECK(run.time_is_up() ==
        Strings{"say what ranks left behind did not end within 300 s (--leftover-timeout): it is ended",
                "sweep SIGTERM"});
  CHECK(run.time_is_up() == Strings{"say processes that ranks left behind did not end: killing them", "kill"});
  CHECK(run.gone(303010) == Strings{"settle"});
  CHECK(run.settled(303020).back() == "finish 0 ");
}

TEST_CASE("with --leftover-timeout 0 nothing that ranks leave behind is waited for") {
  auto policy = policy_for(1);
  policy.leftover_timeout = {};
  Drive run(policy);
  run.begin();
  CHECK(run.exited(0, 1000) == Strings{"sweep SIGTERM"});
  CHECK(run.time_is_up() == Strings{"say processes that ranks left behind did not end: killing them", "kill"});
}

TEST_CASE("a failure stops the others at once, and what they leave behind has what is left of their time") {
  Drive run(policy_for(3));
  run.begin();
  CHECK(run.exited(1, 1000, {42}) == Strings{"SIGTERM to 0,2"});
  CHECK(run.exited(0, 1010, kTerminated) == Strings{});
  CHECK(run.exited(2, 1020, kTerminated) == Strings{"sweep SIGTERM"});
  CHECK(run.gone(1021) == Strings{"report rank 1 exited with code 42", "settle nothing"});
  CHECK(run.settled(1030) == Strings{"finish 42 rank 1 exited with code 42"});
}

TEST_CASE("a rank that ignores SIGTERM is killed after the shutdown timeout") {
  auto policy = policy_for(2);
  policy.shutdown_timeout = std::chrono::seconds(1);
  Drive run(policy);
  run.begin();
  run.exited(0, 1000, {3});
  CHECK(run.time_is_up() == Strings{"kill"});
  CHECK(run.exited(1, 2001, kKilled) == Strings{});
  CHECK(run.gone(2002) == Strings{"report rank 0 exited with code 3", "settle nothing"});
}

TEST_CASE("what is left of a rank's group at the end of the ranks' time is killed") {
  auto policy = policy_for(2);
  policy.shutdown_timeout = std::chrono::seconds(8);
  Drive run(policy);
  run.begin();
  run.signal(SIGTERM, 1000);
  run.exited(0, 1010, kTerminated);
  CHECK(run.exited(1, 1020, kTerminated) == Strings{"sweep SIGTERM"});
  CHECK(run.time_is_up() == Strings{"say processes that ranks left behind did not end: killing them", "kill"});
}

TEST_CASE("all are gone before the last exit is told") {
  Drive run(policy_for(2));
  run.begin();
  run.exited(0, 1000, {3});
  run.time_is_up();
  CHECK(run.gone(31001) == Strings{"report rank 0 exited with code 3", "settle nothing"});
  CHECK(run.exited(1, 31002, kKilled) == Strings{});
}

TEST_CASE("the first rank cannot be started: nobody is to be stopped") {
  Drive run(policy_for(2));
  run.start();
  CHECK(run.unspawned(0, 10) == Strings{"sweep SIGTERM"});
}

TEST_CASE("a rank that appears while the others are being stopped is stopped too") {
  Drive run(policy_for(3));
  run.start();
  run.spawned(0);
  run.spawned(1);
  run.exited(0, 1000, {3});
  CHECK(run.exited(1, 1001, kTerminated) == Strings{});
  CHECK(run.spawned(2) == Strings{"SIGTERM to 2"});
  CHECK(run.exited(2, 1002, kTerminated) == Strings{"sweep SIGTERM"});
}

TEST_CASE("ranks that do not join are named once, with their node") {
  Drive run(policy_for(4, 0, 2));
  run.begin();
  CHECK(run.joined(0, 1000) == Strings{});
  CHECK(run.joined(2, 1500) == Strings{});
  CHECK(run.time_is_up() == Strings{"say waiting for ranks 1 (node 0), 3 (node 1) to join: 2 of 4 have"});
  CHECK(run.joined(1, 17000) == Strings{});
  CHECK(run.deadline(40000) == Strings{});
}

TEST_CASE("nobody is waited for once all have joined") {
  Drive run(policy_for(2));
  run.begin();
  run.joined(0, 1000);
  run.joined(1, 1500);
  CHECK_FALSE(run.due);
}

TEST_CASE("a rank that cannot be killed is named, and the run ends without it") {
  Drive run(policy_for(2, 3));
  run.begin();
  run.exited(0, 0, {9});
  run.time_is_up();
  Strings said;
  for (int kills = 0; kills < 30; ++kills) {
    for (auto& decided : run.time_is_up()) {
      if (decided.starts_with("say ") || decided.starts_with("report ")) said.push_back(decided);
    }
  }
  REQUIRE(said.size() == 3);
  CHECK_THAT(said[0], ContainsSubstring("rank 1 cannot be killed"));
  CHECK_THAT(said[1], ContainsSubstring("giving up"));
  CHECK(said[2] == "report rank 0 exited with code 9");
  CHECK(run.settled(60001).back() == "finish 9 rank 0 exited with code 9");
}

TEST_CASE("killing is repeated every second") {
  Drive run(policy_for(1));
  run.begin();
  run.signal(SIGINT, 0);
  run.signal(SIGINT, 300);
  CHECK(run.time_is_up() == Strings{"kill"});
  CHECK(run.time_is_up() == Strings{"kill"});
}

TEST_CASE("output that is not on disk fails a run that had ended well") {
  Drive run(policy_for(1));
  run.begin();
  run.exited(0, 1000);
  run.gone(1001);
  CHECK(run.settled(1002, "cannot write model.pt: no space left on device").back() ==
        "finish 1 training ended well, but its output is not on disk: cannot write model.pt: no space left on device");
}

TEST_CASE("output that is not on disk does not hide an earlier failure") {
  Drive run(policy_for(1));
  run.begin();
  run.exited(0, 1000, {3});
  run.gone(1001);
  CHECK(run.settled(1002, "cannot write model.pt") ==
        Strings{"say cannot write model.pt", "finish 3 rank 0 exited with code 3"});
}

TEST_CASE("slow output is mentioned again and again") {
  Drive run(policy_for(1));
  run.begin();
  run.exited(0, 1000);
  run.gone(1001);
  CHECK(run.time_is_up() == Strings{"say output is still being put on disk"});
}

TEST_CASE("doubled events, and ranks that do not exist, change nothing") {
  Drive run(policy_for(2));
  run.begin();
  CHECK(run.start() == Strings{});
  CHECK(run.spawned(0) == Strings{});
  CHECK(run.exited(-1, 1, {1}) == Strings{});
  CHECK(run.exited(2, 1, {1}) == Strings{});
  CHECK(run.gone(1) == Strings{});
  CHECK(run.deadline(1) == Strings{});
  CHECK(run.settled(1) == Strings{});
  run.exited(0, 2);
  CHECK(run.exited(0, 3, {1}) == Strings{});
  CHECK(run.unspawned(1, 3) == Strings{});
  CHECK(run.exited(1, 4) == Strings{"await leftovers"});
}

}  // namespace supervisor_test
