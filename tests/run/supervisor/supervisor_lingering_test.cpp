// Ranks whose processes do not end: those that have raised, and those that live on after all others.
#include "catch.hpp"
#include "run/scenario.hpp"
#include "run/supervisor/supervisor.hpp"
#include "supervisor_drive.hpp"

namespace supervisor_lingering_test {

using namespace taas;
using namespace taas::run;
using namespace std::chrono_literals;
using supervisor_drive::Drive;
using supervisor_drive::kTerminated;
using supervisor_drive::Strings;

namespace {

RankLingers lingers(int rank, long when, Lingering state, std::string waits_for = {}, long raised_when = 1000) {
  return {Generation{0}, Rank{rank}, state, std::move(waits_for), raised("ValueError: bad shape", raised_when),
          at_ms(when)};
}

}  // namespace

TEST_CASE("a rank that has raised and does not end is told, fails after its time, and is named first") {
  Drive run(policy_for(3));
  run.begin();
  CHECK(run.feed(lingers(1, 4000, Lingering::kFailed, "thread \"writer\"")) ==
        Strings{"say rank 1 raised ValueError: bad shape and has not ended: waits for thread \"writer\""});
  CHECK(run.time_is_up() ==
        Strings{"say rank 1 counts as failed: it has not ended within 30 s of its exception (--exit-timeout)",
                "SIGTERM to 0,1,2"});
  run.exited(0, 34010, kTerminated);
  run.exited(1, 34010, kTerminated);
  CHECK(run.exited(2, 34010, kTerminated) == Strings{"sweep SIGTERM"});
  CHECK(run.gone(34020).front() == "report rank 1 raised ValueError: bad shape");
  CHECK(run.settled(34030).back() == "finish 1 rank 1 raised ValueError: bad shape");
}

TEST_CASE("it is restarted as if it had ended") {
  Drive run(policy_for(2, 1));
  run.begin();
  run.feed(lingers(0, 4000, Lingering::kFailed));
  run.time_is_up();
  run.exited(0, 34010, kTerminated);
  run.exited(1, 34010, kTerminated);
  CHECK(run.gone(34020) == Strings{"report rank 0 raised ValueError: bad shape, restarting", "start 1"});
}

TEST_CASE("where it is not certain that a rank has failed, that is all that is said") {
  Drive run(policy_for(2));
  run.begin();
  CHECK(run.feed(lingers(1, 4000, Lingering::kSilent)) ==
        Strings{"say rank 1 printed ValueError: bad shape and has done nothing since; it may have failed, and has not "
                "ended"});
  CHECK(run.feed(lingers(1, 9000, Lingering::kGoesOn)) == Strings{});
  CHECK(run.signal(SIGINT, 10000).front() == "say SIGINT: stopping all ranks; once more kills them");
  run.exited(0, 10010, {0, SIGINT});
  run.exited(1, 10010, {0, SIGINT});
  run.gone(10020);
  CHECK(run.settled(10030).back() == "finish 130 stopped by SIGINT");
}

TEST_CASE("who seemed to have failed for certain and goes on all the same is left alone") {
  Drive run(policy_for(2));
  run.begin();
  run.feed(lingers(1, 4000, Lingering::kFailed));
  run.feed(lingers(1, 20000, Lingering::kGoesOn));
  CHECK(run.time_is_up() == Strings{});
}

TEST_CASE("a rank that ends before its time fails as ever") {
  Drive run(policy_for(2));
  run.begin();
  run.feed(lingers(1, 4000, Lingering::kFailed));
  CHECK(run.exited(1, 5000, {1}) == Strings{"SIGTERM to 0"});
  run.exited(0, 5010, kTerminated);
  CHECK(run.gone(5020).front() == "report rank 1 raised ValueError: bad shape");
}

TEST_CASE("a rank that looked like one that had failed and then ends well is not to blame for what others do") {
  Drive run(policy_for(3));
  run.begin();
  run.feed(lingers(1, 4000, Lingering::kFailed));
  run.exited(1, 5000, {0});
  run.feed(RankExited{Generation{0}, Rank{0}, {1}, raised("KeyError: 'x'", 20000), at_ms(20010)});
  run.exited(2, 20020, kTerminated);
  CHECK(run.gone(20030).front() == "report rank 0 raised KeyError: 'x'");
}

TEST_CASE("its time begins when it was told, not with an older traceback that it had caught") {
  Drive run(policy_for(2));
  run.begin();
  run.feed(lingers(1, 90000, Lingering::kFailed, "", 1000));
  CHECK(run.due == at_ms(90000) + Policy().exit_timeout);
}

TEST_CASE("the user's stop just after a rank counted as failed leaves it a failure") {
  Drive run(policy_for(2));
  run.begin();
  run.feed(lingers(1, 4000, Lingering::kFailed));
  run.time_is_up();
  CHECK(run.signal(SIGINT, 34500).front() == "say SIGINT: killing what is left");
  run.exited(0, 34510, {0, SIGKILL});
  run.exited(1, 34510, {0, SIGKILL});
  CHECK(run.gone(34520).front() == "report rank 1 raised ValueError: bad shape");
}

TEST_CASE("the timeout can be switched off") {
  auto policy = policy_for(2);
  policy.exit_timeout = 0ms;
  Drive run(policy);
  run.begin();
  CHECK(run.feed(lingers(1, 4000, Lingering::kFailed)).size() == 1);
}

TEST_CASE("a stop by the user names what had failed before, for certain first") {
  const bool only_silent = GENERATE(true, false);
  Drive run(policy_for(3));
  run.begin();
  run.feed(lingers(0, 4000, Lingering::kSilent, "", 900));
  if (!only_silent) run.feed(lingers(1, 4000, Lingering::kFailed));
  run.signal(SIGINT, 10000);
  for (int rank : {0, 1, 2}) run.exited(rank, 10010, {0, SIGINT});
  run.gone(10020);
  CHECK(run.settled(10030).back() ==
        (only_silent
             ? "finish 130 rank 0 had printed ValueError: bad shape and done nothing since when the run was stopped by "
               "SIGINT"
             : "finish 130 rank 1 had raised ValueError: bad shape and not ended when the run was stopped by SIGINT"));
}

TEST_CASE("a rank that had raised is to blame before one that only noticed later") {
  Drive run(policy_for(2));
  run.begin();
  run.feed(lingers(1, 4000, Lingering::kFailed));
  run.feed(RankExited{Generation{0}, Rank{0}, {1}, lost_peer(20000), at_ms(20010)});
  run.exited(1, 20020, kTerminated);
  CHECK(run.gone(20030).front() == "report rank 1 raised ValueError: bad shape");
}

TEST_CASE("ranks that live on after the others ended well are named, once and then rarely") {
  Drive run(policy_for(4));
  run.begin();
  CHECK(run.exited(0, 1000) == Strings{});
  CHECK(run.exited(2, 2000) == Strings{});
  CHECK(run.exited(3, 3000) == Strings{});
  CHECK(run.time_is_up() == Strings{"say ranks 0, 2, 3 ended well 30 s ago; rank 1 has not ended"});
  CHECK(run.time_is_up() == Strings{"say ranks 0, 2, 3 ended well 30 min ago; rank 1 has not ended"});
  CHECK(run.exited(1, 1900000) == Strings{"await leftovers"});
}

TEST_CASE("of many ranks that ended well their number is told") {
  Drive run(policy_for(40));
  run.begin();
  for (int rank = 1; rank < 40; ++rank) run.exited(rank, 1000);
  CHECK(run.time_is_up().front() == "say 39 ranks ended well 30 s ago; rank 0 has not ended");
}

}  // namespace supervisor_lingering_test
