// What a run does with the signals that its launcher gets.
#include <fmt/format.h>

#include "catch.hpp"
#include "run/events/words.hpp"
#include "run/scenario.hpp"
#include "supervisor_drive.hpp"

namespace supervisor_signals_test {

using namespace taas;
using namespace taas::run;
using supervisor_drive::Drive;
using supervisor_drive::kKilled;
using supervisor_drive::kTerminated;
using supervisor_drive::Strings;

TEST_CASE("a signal ends the wait for what ranks left behind, another one kills it, and they have succeeded") {
  Drive run(policy_for(1));
  run.begin();
  run.exited(0, 1000);
  CHECK(run.signal(SIGTERM, 5000) ==
        Strings{"say SIGTERM: what ranks left behind is told to end; once more kills it", "sweep SIGTERM"});
  CHECK(run.signal(SIGINT, 6000) == Strings{"say SIGINT: killing what is left", "kill"});
  CHECK(run.gone(6010) == Strings{"settle"});
  CHECK(run.settled(6020).back() == "finish 0 ");
}

TEST_CASE("a signal while what ranks left behind is killed does not undo their success") {
  auto policy = policy_for(1);
  policy.leftover_timeout = {};
  Drive run(policy);
  run.begin();
  run.exited(0, 1000);
  run.time_is_up();
  CHECK(run.signal(SIGINT, 3100) == Strings{});  // it is being killed already
  CHECK(run.gone(3110) == Strings{"settle"});
  CHECK(run.settled(3200).back() == "finish 0 ");
}

TEST_CASE("a stop signal is passed on as it is, and is the run's exit code") {
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    Drive run(policy_for(2, 3));
    run.begin();
    auto name = signal_name(signal);
    CHECK(run.signal(signal, 1000) ==
          Strings{"say " + name + ": stopping all ranks; once more kills them", "request stop 0", name + " to 0,1"});
    run.exited(0, 1001);
    CHECK(run.exited(1, 1002, {0, signal}) == Strings{"sweep SIGTERM"});
    CHECK(run.gone(1003) == Strings{"settle nothing"});
    CHECK(run.settled(1004).back() == fmt::format("finish {} stopped by {}", 128 + signal, name));
  }
}

TEST_CASE("a second stop signal kills at once") {
  Drive run(policy_for(1));
  run.begin();
  run.signal(SIGINT, 1000);
  CHECK(run.signal(SIGINT, 1300) == Strings{"say SIGINT: killing what is left", "kill"});
  CHECK(run.signal(SIGINT, 1600) == Strings{});
  CHECK(run.exited(0, 1601, kKilled) == Strings{});
  run.gone(1602);
  CHECK(run.settled(1603).back() == "finish 130 stopped by SIGINT");
}

TEST_CASE("a stop signal that arrives by two ways at once is one wish") {
  Drive run(policy_for(1));
  run.begin();
  run.signal(SIGTERM, 1000);
  CHECK(run.signal(SIGTERM, 1100) == Strings{});
  CHECK(run.signal(SIGTERM, 1249) == Strings{});
  CHECK(run.signal(SIGTERM, 1250).front() == "say SIGTERM: killing what is left");
}

TEST_CASE("control-C twice means it, however quick") {
  Drive run(policy_for(1));
  run.begin();
  run.signal(SIGINT, 1000);
  CHECK(run.signal(SIGINT, 1001).front() == "say SIGINT: killing what is left");
}

TEST_CASE("in a step of SLURM no signal is a person's, and all may come late") {
  Policy policy = policy_for(1);
  policy.echo = {.within = std::chrono::seconds(2), .interrupts = true};
  for (int signal : {SIGINT, SIGTERM}) {
    Drive run(policy);
    run.begin();
    run.signal(signal, 1000);
    CHECK(run.signal(signal, 2999) == Strings{});
    CHECK_THAT(run.signal(signal, 3000).front(), ContainsSubstring("killing what is left"));
  }
}

TEST_CASE("another stop signal is no echo") {
  Drive run(policy_for(1));
  run.begin();
  run.signal(SIGINT, 1000);
  CHECK(run.signal(SIGTERM, 1001).front() == "say SIGTERM: killing what is left");
}

TEST_CASE("which signals stop the run is the user's choice") {
  Policy policy = policy_for(1);
  policy.stop_signals = {SIGUSR1};
  Drive run(policy);
  run.begin();
  CHECK(run.signal(SIGINT, 1000) == Strings{"SIGINT to 0"});
  CHECK(run.signal(SIGUSR1, 1001).front() == "say SIGUSR1: stopping all ranks; once more kills them");
}

TEST_CASE("a stop signal during a failure's stop keeps the verdict, kills, and forbids the restart") {
  Drive run(policy_for(2, 3));
  run.begin();
  run.exited(0, 1000, {7});
  CHECK(run.signal(SIGTERM, 1100) == Strings{"say SIGTERM: killing what is left", "kill"});
  run.exited(1, 1101, kKilled);
  CHECK(run.gone(1102).front() == "report rank 0 exited with code 7");
  CHECK(run.settled(1103).back() == "finish 7 rank 0 exited with code 7");
}

TEST_CASE("a batch system may signal the ranks before the launcher: that is no failure") {
  Drive run(policy_for(3, 3));
  run.begin();
  run.exited(0, 1000, kTerminated);
  run.exited(1, 1001, {128 + SIGTERM});
  CHECK(run.signal(SIGTERM, 1100) ==
        Strings{"request stop 0", "say SIGTERM: stopping all ranks; once more kills them"});
  run.exited(2, 1200);
  run.gone(1201);
  CHECK(run.settled(1202).back() == "finish 143 stopped by SIGTERM");
}

TEST_CASE("a rank that failed otherwise before the stop signal is to blame") {
  Drive run(policy_for(2));
  run.begin();
  run.exited(0, 1000, kTerminated);
  CHECK(run.signal(SIGINT, 1100).front() == "say SIGINT: killing what is left");
  Drive late(policy_for(2));
  late.begin();
  late.exited(0, 1000, kTerminated);
  CHECK(late.signal(SIGTERM, 3001).front() == "say SIGTERM: killing what is left");
}

TEST_CASE("a stop signal while leftovers of a failure end kills them and forbids the restart") {
  Drive run(policy_for(1, 3));
  run.begin();
  run.exited(0, 1000, {7});
  CHECK(run.signal(SIGTERM, 1100).front() == "say SIGTERM: killing what is left");
  CHECK(run.gone(1101).front() == "report rank 0 exited with code 7");
}

TEST_CASE("a stop signal after training has ended well only hurries") {
  Drive run(policy_for(1));
  run.begin();
  run.exited(0, 1000);
  CHECK(run.signal(SIGTERM, 1100).at(1) == "sweep SIGTERM");
  CHECK(run.gone(1101) == Strings{"settle"});
  CHECK(run.signal(SIGTERM, 1402) == Strings{"say SIGTERM: output is being put on disk; once more gives it up"});
  CHECK(run.settled(1403).back() == "finish 0 ");
}

TEST_CASE("output is given up on the second signal") {
  Drive run(policy_for(1));
  run.begin();
  run.exited(0, 1000);
  run.gone(1001);
  run.signal(SIGTERM, 1102);
  CHECK_THAT(run.signal(SIGTERM, 1403).back(),
             ContainsSubstring("finish 1 training ended well, but its output is not on disk"));
  CHECK(run.settled(1404) == Strings{});
}

TEST_CASE("a stop signal before the start ends the run") {
  Drive run(policy_for(1));
  CHECK(run.signal(SIGTERM, 0) == Strings{"finish 143 stopped by SIGTERM"});
  CHECK(run.start() == Strings{});
}

TEST_CASE("other signals are passed on to those who live, and change nothing") {
  Drive run(policy_for(2));
  CHECK(run.signal(SIGUSR1, 0) == Strings{});
  run.begin();
  CHECK(run.signal(SIGUSR1, 1000) == Strings{"SIGUSR1 to 0,1 that handle it"});
  run.exited(0, 1001);
  CHECK(run.signal(SIGUSR2, 1002) == Strings{"SIGUSR2 to 1 that handle it"});
  run.exited(1, 1003);
  CHECK(run.signal(SIGUSR1, 1004) == Strings{});
}

TEST_CASE("a stop while nodes are gathered ends the run at once") {
  Drive run(policy_for(2), false);
  run.start();
  CHECK(run.signal(SIGTERM, 10) == Strings{"finish 143 stopped by SIGTERM"});
}

TEST_CASE("what says that the run will end soon goes to ranks once, and they go on") {
  auto policy = policy_for(2, 1);
  policy.preempt_signals = {SIGUSR1, SIGTERM};
  Drive run(policy);
  run.begin();
  CHECK(run.signal(SIGUSR1, 100) ==
        Strings{"say SIGUSR1: the run is to end soon; ranks are told to write a checkpoint", "request stop 10"});
  CHECK(run.signal(SIGTERM, 200) == Strings{});
  run.exited(0, 1000, {3});
  run.exited(1, 1001, kTerminated);
  CHECK(run.gone(1002) == Strings{"report rank 0 exited with code 3, restarting", "start 1", "request stop 0"});
}

}  // namespace supervisor_signals_test
