#include "ui/view/narrator.hpp"

#include <csignal>

#include "catch.hpp"
#include "run/events/words.hpp"
#include "ui/helpers.hpp"

namespace narrator_test {

using namespace taas;
using namespace taas::ui;

using run::signal_name;
using Lines = std::vector<std::string>;

namespace {

Narrator narrator(plan::Verbosity verbosity, int max_restarts = 0) {
  auto options = options_for(8);
  options.verbosity = verbosity;
  options.max_restarts = max_restarts;
  return Narrator(options);
}

Event said(Message::Level level) { return Message{level, "words", at_ms(1500)}; }

}  // namespace

TEST_CASE("each level is told to those who want it") {
  using plan::Verbosity;
  using Level = Message::Level;
  const Lines told{"taas-run: words"};
  CHECK(narrator(Verbosity::kQuiet).tell(said(Level::kError)) == told);
  CHECK(narrator(Verbosity::kQuiet).tell(said(Level::kWarning)).empty());
  CHECK(narrator(Verbosity::kQuiet).tell(said(Level::kInfo)).empty());
  CHECK(narrator(Verbosity::kNormal).tell(said(Level::kInfo)) == told);
  CHECK(narrator(Verbosity::kNormal).tell(said(Level::kWarning)) == told);
  CHECK(narrator(Verbosity::kNormal).tell(said(Level::kDebug)).empty());
  CHECK(narrator(Verbosity::kVerbose).tell(said(Level::kDebug)) == Lines{"taas-run: 1.500 s: words"});
  CHECK(narrator(Verbosity::kNormal).tell(RunAction{run::Notify{"words"}}) == told);
  CHECK(narrator(Verbosity::kQuiet).tell(RunAction{run::Notify{"words"}}).empty());
}

TEST_CASE("what happens to ranks is for verbose users") {
  const RunEvent spawned{run::RankSpawned{{}, Rank{3}, 4711, at_ms(20)}};
  const RunEvent exited{run::RankExited{{}, Rank{3}, {0, SIGSEGV, true}, {}, at_ms(2000)}};
  const RunAction signals{run::SignalRanks{{}, ranks({0, 1, 2}), SIGTERM}};
  auto verbose = narrator(plan::Verbosity::kVerbose);
  CHECK(verbose.tell(spawned) == Lines{"taas-run: 0.020 s: rank 3 runs as process 4711"});
  CHECK(verbose.tell(exited) == Lines{"taas-run: 2.000 s: rank 3 was killed by SIGSEGV, core dumped"});
  CHECK(verbose.tell(signals) == Lines{"taas-run: 2.000 s: sending SIGTERM to ranks 0-2"});
  auto normal = narrator(plan::Verbosity::kNormal);
  CHECK(normal.tell(spawned).empty());
  CHECK(normal.tell(exited).empty());
  CHECK(normal.tell(signals).empty());
}

TEST_CASE("a failure is reported once, also to quiet users") {
  auto quiet = narrator(plan::Verbosity::kQuiet);
  auto verdict = failure(1, "rank 1 exited with code 3");
  CHECK(quiet.tell(RunAction{run::ReportFailure{verdict, false}}) == Lines{"taas-run: rank 1 exited with code 3"});
  CHECK(quiet.tell(RunAction{run::Finish{verdict}}).empty());
}

TEST_CASE("an end that was not reported before is") {
  auto normal = narrator(plan::Verbosity::kNormal);
  normal.tell(RunAction{run::ReportFailure{failure(1, "rank 1 exited with code 3"), true}});
  auto verdict = failure(-1, "cannot write model.pt");
  verdict.cause = run::Cause::kOutputFailed;
  CHECK(normal.tell(RunAction{run::Finish{verdict}}) == Lines{"taas-run: cannot write model.pt"});
}

TEST_CASE("a restart is counted") {
  auto normal = narrator(plan::Verbosity::kNormal, 3);
  auto verdict = failure(1, "rank 1 exited with code 3");
  verdict.generation = Generation{4};  // three of them for lost nodes that were replaced
  CHECK(normal.tell(RunAction{run::ReportFailure{verdict, true, 2}}).back() ==
        "taas-run: restarting all 8 ranks, restart 2 of 3");
}

TEST_CASE("failures that are alike are told twice in a line, then whenever their number has doubled, and at the end") {
  auto normal = narrator(plan::Verbosity::kNormal, 99);
  const auto verdict = failure(1, "rank 1 exited with code 3");
  Lines told;
  auto tell = [&](bool restarting, int alike) {
    const run::ReportFailure report{verdict, restarting, alike + 1, std::chrono::seconds(2), alike};
    for (auto& line : normal.tell(RunAction{report})) told.push_back(line);
  };
  for (int alike = 0; alike < 10; ++alike) tell(true, alike);
  tell(false, 10);
  CHECK(told == Lines{"taas-run: rank 1 exited with code 3", "taas-run: restarting all 8 ranks in 2 s, restart 1 of 99",
                      "taas-run: rank 1 exited with code 3, as before; restarting all 8 ranks in 2 s, restart 2 of 99",
                      "taas-run: rank 1 exited with code 3, as before; restarting all 8 ranks in 2 s, restart 3 of 99",
                      "taas-run: and 2 more like it; restarting all 8 ranks in 2 s, restart 5 of 99",
                      "taas-run: and 4 more like it; restarting all 8 ranks in 2 s, restart 9 of 99",
                      "taas-run: and 1 more like it", "taas-run: rank 1 exited with code 3"});
}

TEST_CASE("a restart counts the ranks that there are, and none where that is not known yet") {
  auto normal = narrator(plan::Verbosity::kNormal, 3);
  normal.tell(RunEvent{run::NodesGathered{2, {NodeIndex{0}, NodeIndex{0}}, {"hosta"}, at_ms(0)}});
  auto verdict = failure(1, "rank 1 exited with code 3");
  CHECK(normal.tell(RunAction{run::ReportFailure{verdict, true, 1}}).back() ==
        "taas-run: restarting all 2 ranks, restart 1 of 3");
  verdict.cause = run::Cause::kNodeLost;
  CHECK(normal.tell(RunAction{run::ReportFailure{verdict, true}}).back() ==
        "taas-run: restarting the ranks with the nodes that are left");
  CHECK(normal.tell(RunAction{run::ReportFailure{verdict, true, 2}}).back() ==
        "taas-run: restarting the ranks with the nodes that are left, restart 2 of 3");
}

TEST_CASE("a good end is told, but not to quiet users") {
  auto normal = narrator(plan::Verbosity::kNormal);
  normal.tell(RunEvent{run::OutputSettled{"", at_ms(12300)}});
  normal.set_output({"/runs/x/output", 2});
  CHECK(normal.tell(RunAction{run::Finish{}}) == Lines{"taas-run: done in 12.3 s, 2 files in /runs/x/output"});
  CHECK(narrator(plan::Verbosity::kQuiet).tell(RunAction{run::Finish{}}).empty());
}

TEST_CASE("a silence and its end are told, of many nodes their number") {
  auto normal = narrator(plan::Verbosity::kNormal);
  run::NodesSilent silent{{NodeIndex{2}}, {"hostc"}, at_ms(1000), std::chrono::seconds(30), at_ms(4000)};
  CHECK(
      normal.tell(RunEvent{silent}) ==
      Lines{"taas-run: node 2 (hostc) has not answered for 3 s; it counts as lost after 30 s without a sign of life"});
  CHECK(normal.tell(RunEvent{run::NodesAnswer{{NodeIndex{2}}, {"hostc"}, std::chrono::milliseconds(7250), {}}}) ==
        Lines{"taas-run: node 2 (hostc) answers again, after 7.2 s"});
  silent.nodes.assign(5, NodeIndex{1});
  silent.names.assign(5, "host");
  CHECK(normal.tell(RunEvent{silent}) ==
        Lines{"taas-run: 5 nodes have not answered for 3 s; they count as lost after 30 s without a sign of life"});
  CHECK(narrator(plan::Verbosity::kQuiet).tell(RunEvent{silent}).empty());
}

TEST_CASE("signals have names") {
  CHECK(signal_name(SIGTERM) == "SIGTERM");
  CHECK(signal_name(SIGUSR1) == "SIGUSR1");
  CHECK(signal_name(63) == "signal 63");
}

TEST_CASE("CPU machines that no loader has used are told of, where they were asked for and the run ended well") {
  const auto told = [](int machines, run::Cause cause) {
    auto options = options_for(1);
    options.data.machines = machines;
    run::Verdict verdict;
    verdict.cause = cause;
    auto lines = Narrator(options).tell(RunAction{run::Finish{verdict}});
    return std::ranges::any_of(lines,
                               [](const auto& line) { return line.starts_with("taas-run: --cpus had no effect"); });
  };
  CHECK(told(2, run::Cause::kSuccess));
  CHECK_FALSE(told(0, run::Cause::kSuccess));
  CHECK_FALSE(told(2, run::Cause::kExitCode));
}

}  // namespace narrator_test
