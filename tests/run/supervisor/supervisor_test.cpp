#include "run/supervisor/supervisor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>

#include "catch.hpp"
#include "run/events/words.hpp"
#include "run/scenario.hpp"

namespace supervisor_test {

using namespace taas;
using namespace taas::run;

namespace {

using Strings = std::vector<std::string>;

std::string list(const std::vector<Rank>& chosen) {
  std::vector<int> numbers;
  for (Rank rank : chosen) numbers.push_back(rank.value);
  return fmt::format("{}", fmt::join(numbers, ","));
}

long ms(Instant at) { return std::chrono::duration_cast<std::chrono::milliseconds>(at - at_ms(0)).count(); }

std::string brief(const GatherNodes& a) { return fmt::format("gather {}", a.generation.value); }
std::string brief(const RequestStop& a) { return fmt::format("request stop {}", a.signal); }
std::string brief(const StartGeneration& a) { return fmt::format("start {}", a.generation.value); }
std::string brief(const SignalRanks& a) { return fmt::format("{} to {}", signal_name(a.signal), list(a.ranks)); }
std::string brief(const KillGeneration&) { return "kill"; }
std::string brief(const SweepGeneration& a) { return fmt::format("sweep {}", signal_name(a.signal)); }
std::string brief(const SetDeadline& a) { return fmt::format("deadline {}", ms(a.at)); }
std::string brief(const ClearDeadline&) { return "no deadline"; }
std::string brief(const SettleOutput& a) { return a.publish ? "settle" : "settle nothing"; }
std::string brief(const Notify& a) { return "say " + a.text; }
std::string brief(const ReportFailure& a) {
  return fmt::format("report {}{}", a.verdict.summary, a.restarting ? ", restarting" : "");
}
std::string brief(const Finish& a) { return fmt::format("finish {} {}", a.verdict.exit_code, a.verdict.summary); }

/// One run, driven by hand. Every function returns what was decided, in short. Nodes are there when they are asked for,
/// unless the test gathers them itself.
class Drive {
 public:
  explicit Drive(const Policy& policy, bool gathers = true)
      : world_size_(policy.world_size), nodes_(policy.node_of_rank), gathers_(gathers), supervisor_(policy) {}

  Strings start() { return feed(RunStarted{at_ms(0)}); }
  Strings gathered(long when) { return feed(NodesGathered{world_size_, nodes_, {}, at_ms(when)}); }
  Strings begin() {
    auto decided = start();
    spawn_all();
    return decided;
  }
  void spawn_all() {
    for (int rank = 0; rank < world_size_; ++rank) spawned(rank);
  }
  Strings spawned(int rank) { return feed(RankSpawned{generation, Rank{rank}, 100 + rank, at_ms(0)}); }
  Strings unspawned(int rank, long when) {
    return feed(RankSpawnFailed{generation, Rank{rank}, ENOENT, "cannot execute ./x: no such file", at_ms(when)});
  }
  Strings joined(int rank, long when) { return feed(RankJoined{generation, Rank{rank}, at_ms(when)}); }
  Strings exited(int rank, long when, ExitStatus status = {}) {
    return feed(RankExited{generation, Rank{rank}, status, {}, at_ms(when)});
  }
  Strings gone(long when) { return feed(GenerationGone{generation, at_ms(when)}); }
  Strings signal(int number, long when) { return feed(SignalReceived{number, at_ms(when)}); }
  Strings deadline(long when) { return feed(DeadlineReached{at_ms(when)}); }
  Strings settled(long when, std::string error = "") { return feed(OutputSettled{std::move(error), at_ms(when)}); }

  Strings feed(const Event& event) {
    Strings decided;
    bool asked = false;
    for (const auto& action : supervisor_.handle(event)) {
      bool gather = gathers_ && std::holds_alternative<GatherNodes>(action);
      asked = asked || gather;
      if (!gather) decided.push_back(std::visit([](const auto& chosen) { return brief(chosen); }, action));
    }
    if (!asked) return decided;
    for (auto& then : gathered(0)) decided.push_back(std::move(then));
    return decided;
  }

  Generation generation{0};

 private:
  int world_size_;
  std::vector<NodeIndex> nodes_;
  bool gathers_;
  Supervisor supervisor_;
};

const ExitStatus kTerminated{0, SIGTERM};
const ExitStatus kKilled{0, SIGKILL};

}  // namespace

TEST_CASE("a run without trouble") {
  Drive run(policy_for(2));
  CHECK(run.begin() == Strings{"start 0"});
  CHECK(run.exited(0, 1000) == Strings{});
  CHECK(run.exited(1, 1500) == Strings{"sweep SIGTERM", "deadline 3500"});
  CHECK(run.gone(1501) == Strings{"settle", "deadline 31501"});
  CHECK(run.settled(1600) == Strings{"no deadline", "finish 0 "});
}

TEST_CASE("what ranks leave behind is told to end, then killed") {
  Drive run(policy_for(1));
  run.begin();
  run.exited(0, 1000);
  CHECK(run.deadline(3000) ==
        Strings{"say processes that ranks left behind did not end: killing them", "kill", "deadline 4000"});
  CHECK(run.gone(3010) == Strings{"settle", "deadline 33010"});
}

TEST_CASE("a signal while what ranks left behind is killed does not undo their success") {
  Drive run(policy_for(1));
  run.begin();
  run.exited(0, 1000);
  run.deadline(3000);
  CHECK(run.signal(SIGINT, 3100) == Strings{});  // it is being killed already
  CHECK(run.gone(3110) == Strings{"settle", "deadline 33110"});
  CHECK(run.settled(3200).back() == "finish 0 ");
}

TEST_CASE("a failure stops the others at once, and what they leave behind is killed") {
  Drive run(policy_for(3));
  run.begin();
  CHECK(run.exited(1, 1000, {42}) == Strings{"SIGTERM to 0,2", "deadline 31000"});
  CHECK(run.exited(0, 1010, kTerminated) == Strings{});
  CHECK(run.exited(2, 1020, kTerminated) == Strings{"sweep SIGKILL", "deadline 2020"});
  CHECK(run.gone(1021) == Strings{"report rank 1 exited with code 42", "settle nothing", "deadline 31021"});
  CHECK(run.settled(1030) == Strings{"no deadline", "finish 42 rank 1 exited with code 42"});
}

TEST_CASE("a rank that ignores SIGTERM is killed after the shutdown timeout") {
  auto policy = policy_for(2);
  policy.shutdown_timeout = std::chrono::seconds(1);
  Drive run(policy);
  run.begin();
  run.exited(0, 1000, {3});
  CHECK(run.deadline(2000) == Strings{"kill", "deadline 3000"});
  CHECK(run.exited(1, 2001, kKilled) == Strings{});
  CHECK(run.gone(2002) == Strings{"report rank 0 exited with code 3", "settle nothing", "deadline 32002"});
}

TEST_CASE("all are gone before the last exit is told") {
  Drive run(policy_for(2));
  run.begin();
  run.exited(0, 1000, {3});
  run.deadline(31000);
  CHECK(run.gone(31001) == Strings{"report rank 0 exited with code 3", "settle nothing", "deadline 61001"});
  CHECK(run.exited(1, 31002, kKilled) == Strings{});
}

TEST_CASE("a restart begins in the instant in which the last process is gone, as often as allowed") {
  Drive run(policy_for(2, 1));
  run.begin();
  run.exited(1, 1000, {4});
  run.exited(0, 1001, kTerminated);
  CHECK(run.gone(1002) == Strings{"report rank 1 exited with code 4, restarting", "no deadline", "start 1"});
  run.generation = Generation{1};
  run.spawn_all();
  CHECK(run.exited(0, 2000, {5}) == Strings{"SIGTERM to 1", "deadline 32000"});
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
  CHECK(run.unspawned(1, 10) == Strings{"SIGTERM to 0", "deadline 30010"});
  CHECK(run.exited(0, 20, kTerminated) == Strings{"sweep SIGKILL", "deadline 1020"});
  CHECK(run.gone(21) == Strings{"report cannot execute ./x: no such file", "settle nothing", "deadline 30021"});
  CHECK(run.settled(30).back() == "finish 127 cannot execute ./x: no such file");
}

TEST_CASE("the first rank cannot be started: nobody is to be stopped") {
  Drive run(policy_for(2));
  run.start();
  CHECK(run.unspawned(0, 10) == Strings{"sweep SIGKILL", "deadline 1010"});
}

TEST_CASE("a rank that appears while the others are being stopped is stopped too") {
  Drive run(policy_for(3));
  run.start();
  run.spawned(0);
  run.spawned(1);
  run.exited(0, 1000, {3});
  CHECK(run.exited(1, 1001, kTerminated) == Strings{});
  CHECK(run.spawned(2) == Strings{"SIGTERM to 2"});
  CHECK(run.exited(2, 1002, kTerminated) == Strings{"sweep SIGKILL", "deadline 2002"});
}

TEST_CASE("a stop signal is passed on as it is, and is the run's exit code") {
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    Drive run(policy_for(2, 3));
    run.begin();
    auto name = signal_name(signal);
    CHECK(run.signal(signal, 1000) == Strings{"say " + name + ": stopping all ranks; once more kills them",
                                              "request stop 0", name + " to 0,1", "deadline 31000"});
    run.exited(0, 1001);
    CHECK(run.exited(1, 1002, {0, signal}) == Strings{"sweep SIGTERM", "deadline 3002"});
    CHECK(run.gone(1003) == Strings{"settle nothing", "deadline 31003"});
    CHECK(run.settled(1004).back() == fmt::format("finish {} stopped by {}", 128 + signal, name));
  }
}

TEST_CASE("a second stop signal kills at once") {
  Drive run(policy_for(1));
  run.begin();
  run.signal(SIGINT, 1000);
  CHECK(run.signal(SIGINT, 1300) == Strings{"say SIGINT: killing what is left", "kill", "deadline 2300"});
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
  CHECK(run.signal(SIGTERM, 1100) == Strings{"say SIGTERM: killing what is left", "kill", "deadline 2100"});
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

TEST_CASE("a stop signal while leftovers of a failure are killed forbids the restart") {
  Drive run(policy_for(1, 3));
  run.begin();
  run.exited(0, 1000, {7});
  CHECK(run.signal(SIGTERM, 1100) == Strings{});
  CHECK(run.gone(1101).front() == "report rank 0 exited with code 7");
}

TEST_CASE("a stop signal after training has ended well only hurries") {
  Drive run(policy_for(1));
  run.begin();
  run.exited(0, 1000);
  CHECK(run.signal(SIGTERM, 1100).at(1) == "kill");
  CHECK(run.gone(1101) == Strings{"settle", "deadline 31101"});
  CHECK(run.signal(SIGTERM, 1402) == Strings{"say SIGTERM: output is being put on disk; once more gives it up"});
  CHECK(run.settled(1403).back() == "finish 0 ");
}

TEST_CASE("output is given up on the second signal") {
  Drive run(policy_for(1));
  run.begin();
  run.exited(0, 1000);
  run.gone(1001);
  run.signal(SIGTERM, 1102);
  auto decided = run.signal(SIGTERM, 1403);
  REQUIRE(decided.size() == 2);
  CHECK_THAT(decided[1], ContainsSubstring("finish 1 training ended well, but its output is not on disk"));
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
  CHECK(run.signal(SIGUSR1, 1000) == Strings{"SIGUSR1 to 0,1"});
  run.exited(0, 1001);
  CHECK(run.signal(SIGUSR2, 1002) == Strings{"SIGUSR2 to 1"});
  run.exited(1, 1003);
  CHECK(run.signal(SIGUSR1, 1004) == Strings{});
}

TEST_CASE("ranks that do not join are named once, with their node") {
  Drive run(policy_for(4, 0, 2));
  run.begin();
  CHECK(run.joined(0, 1000) == Strings{"deadline 16000"});
  CHECK(run.joined(2, 1500) == Strings{});
  CHECK(run.deadline(16000) == Strings{"say waiting for ranks 1 (node 0), 3 (node 1) to join: 2 of 4 have"});
  CHECK(run.joined(1, 17000) == Strings{});
  CHECK(run.deadline(40000) == Strings{});
}

TEST_CASE("nobody is waited for once all have joined") {
  Drive run(policy_for(2));
  run.begin();
  run.joined(0, 1000);
  CHECK(run.joined(1, 1500) == Strings{"no deadline"});
}

TEST_CASE("a rank that cannot be killed is named, and the run ends without it") {
  Drive run(policy_for(2, 3));
  run.begin();
  run.exited(0, 0, {9});
  run.deadline(30000);
  Strings said;
  for (long second = 31; second <= 60; ++second) {
    for (auto& decided : run.deadline(second * 1000)) {
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
  CHECK(run.deadline(1300) == Strings{"kill", "deadline 2300"});
  CHECK(run.deadline(2300) == Strings{"kill", "deadline 3300"});
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
        Strings{"say cannot write model.pt", "no deadline", "finish 3 rank 0 exited with code 3"});
}

TEST_CASE("slow output is mentioned again and again") {
  Drive run(policy_for(1));
  run.begin();
  run.exited(0, 1000);
  run.gone(1001);
  CHECK(run.deadline(31001) == Strings{"say output is still being put on disk", "deadline 61001"});
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
  CHECK(run.exited(1, 4) == Strings{"sweep SIGTERM", "deadline 2004"});
}

TEST_CASE("nodes are asked for before each generation, and bring the world with them") {
  Drive run(policy_for(2, 1), false);
  CHECK(run.start() == Strings{"gather 0"});
  CHECK(run.gathered(10) == Strings{"start 0"});
  run.spawn_all();
  run.exited(0, 1000, {3});
  run.exited(1, 1001, kTerminated);
  CHECK(run.gone(1002) == Strings{"report rank 0 exited with code 3, restarting", "gather 1", "no deadline"});
  CHECK(run.feed(NodesGathered{1, {NodeIndex{0}}, {}, at_ms(1010)}) == Strings{"start 1"});
  run.generation = Generation{1};
  run.spawned(0);
  CHECK(run.exited(0, 2000) == Strings{"sweep SIGTERM", "deadline 4000"});
}

TEST_CASE("a run without enough nodes ends with what is missing") {
  Drive run(policy_for(2), false);
  run.start();
  CHECK(run.feed(GatherFailed{"hostb cannot be reached", "", 2, at_ms(10)}) ==
        Strings{"report hostb cannot be reached", "finish 2 hostb cannot be reached"});
}

TEST_CASE("a stop while nodes are gathered ends the run at once") {
  Drive run(policy_for(2), false);
  run.start();
  CHECK(run.signal(SIGTERM, 10) == Strings{"finish 143 stopped by SIGTERM"});
}

namespace {

NodeLost lost(int node, long when, bool replaceable) {
  return {Generation{0}, NodeIndex{node}, "hostb", "no sign of life for 2.5 s", at_ms(when), replaceable, at_ms(when)};
}

}  // namespace

TEST_CASE("a lost node stops the others, and costs no restart when it can be replaced") {
  Drive run(policy_for(4, 0, 2));
  run.begin();
  CHECK(run.feed(lost(1, 1000, true)) == Strings{"SIGTERM to 0,1", "deadline 31000"});
  run.exited(0, 1010, kTerminated);
  CHECK(run.exited(1, 1010, kTerminated) == Strings{"sweep SIGKILL", "deadline 2010"});
  CHECK(run.gone(1020) ==
        Strings{"report node 1 (hostb) was lost: no sign of life for 2.5 s, restarting", "no deadline", "start 1"});
}

TEST_CASE("a lost node that cannot be replaced ends a run without restarts, with code 1") {
  Drive run(policy_for(4, 0, 2));
  run.begin();
  run.feed(lost(0, 1000, false));
  run.exited(2, 1010, kTerminated);
  run.exited(3, 1010, kTerminated);
  CHECK(run.gone(1020) ==
        Strings{"report node 0 (hostb) was lost: no sign of life for 2.5 s", "settle nothing", "deadline 31020"});
  CHECK(run.settled(1030).back() == "finish 1 node 0 (hostb) was lost: no sign of life for 2.5 s");
}

TEST_CASE("a node on which all ranks had ended well is no loss") {
  Drive run(policy_for(4, 0, 2));
  run.begin();
  run.exited(2, 900);
  run.exited(3, 900);
  CHECK(run.feed(lost(1, 1000, false)) == Strings{});
}

TEST_CASE("only an exception before any rank has talked to the store is not restarted") {
  struct Case {
    bool reaches_store;
    RankExited exit;
    bool restarts;
  };
  const auto by_exception = raised("NameError: name 'epochz' is not defined", 990);
  const auto ended = [](ExitStatus status, Evidence evidence = {}) {
    return RankExited{Generation{0}, Rank{0}, status, std::move(evidence), at_ms(1000)};
  };
  auto [reaches_store, exit, restarts] = GENERATE_COPY(values<Case>({
      {false, ended({1}, by_exception), false},
      {true, ended({1}, by_exception), true},
      {false, ended({1}), true},
      {false, ended({42}), true},
      {false, ended({0, SIGSEGV}), true},
      {false, ended({0, SIGKILL}), true},
  }));
  auto policy = policy_for(1, 3);
  policy.startup_needs_store = true;
  Supervisor supervisor(policy);
  supervisor.handle(RunStarted{at_ms(0)});
  supervisor.handle(NodesGathered{1, {NodeIndex{0}}, {}, at_ms(0)});
  if (reaches_store) supervisor.handle(StoreReached{Generation{0}, at_ms(500)});
  supervisor.handle(exit);
  auto decided = supervisor.handle(GenerationGone{Generation{0}, at_ms(1001)});
  const auto& report = std::get<ReportFailure>(decided.front());
  CHECK(report.restarting == restarts);
  CHECK(report.verdict.hint.starts_with("not restarted: no rank had reached the store; ") == !restarts);
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
  CHECK(run.gone(1002) ==
        Strings{"report rank 0 exited with code 3, restarting", "no deadline", "start 1", "request stop 0"});
}

}  // namespace supervisor_test
