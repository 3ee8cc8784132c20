#include "run/messages/journal.hpp"

#include <boost/json/parse.hpp>

#include "catch.hpp"
#include "run/scenario.hpp"

namespace journal_test {

using namespace taas;
using namespace taas::run;

namespace {

boost::json::object line(const Event& event) { return boost::json::parse(journal_line(event, at_ms(0))).as_object(); }
boost::json::object line(const Action& action) {
  return boost::json::parse(journal_line(action, at_ms(0))).as_object();
}

const Generation kSecond{1};

}  // namespace

TEST_CASE("an event's line: its time, its name, its members") {
  auto exited = said({"last words"}, at_ms(1000));
  exited.stderr_path = "/x.err";
  auto text = line(RankExited{kSecond, Rank{3}, {0, SIGSEGV, true}, exited, at_ms(1250)});
  CHECK(text.at("t").to_number<double>() == 1.25);
  CHECK(text.at("event") == "rank_exited");
  CHECK(text.at("generation") == 1);
  CHECK(text.at("rank") == 3);
  CHECK(text.at("status") == boost::json::object{{"code", 0}, {"signal", SIGSEGV}, {"core_dumped", true}});
  const auto& evidence = text.at("evidence").as_object();
  CHECK(evidence.at("last_lines") == boost::json::array{"last words"});
  CHECK(evidence.at("first_error_at").to_number<double>() == 1.0);
  CHECK(evidence.at("stderr_path") == "/x.err");
  CHECK_FALSE(text.contains("at"));
}

TEST_CASE("an instant that is not set is left out") {
  auto text = line(RankExited{kSecond, Rank{3}, {}, {}, at_ms(1250)});
  CHECK_FALSE(text.at("evidence").as_object().contains("first_error_at"));
}

TEST_CASE("an action's line has no time of its own") {
  auto text = line(SignalRanks{kSecond, ranks({0, 2}), SIGTERM});
  CHECK(text == boost::json::object{{"action", "signal_ranks"},
                                    {"generation", 1},
                                    {"ranks", {0, 2}},
                                    {"signal", SIGTERM},
                                    {"to_end", true},
                                    {"sent", false}});
  CHECK(line(ClearDeadline{}) == boost::json::object{{"action", "clear_deadline"}});
  CHECK(line(SetDeadline{at_ms(500)}).at("at").to_number<double>() == 0.5);
}

TEST_CASE("every event and action has a line") {
  const std::pair<Event, const char*> events[]{
      {RunStarted{at_ms(0)}, "run_started"},
      {RankSpawned{kSecond, Rank{0}, 7, at_ms(0)}, "rank_spawned"},
      {RankSpawnFailed{kSecond, Rank{0}, 2, "m", at_ms(0)}, "rank_spawn_failed"},
      {StoreReached{kSecond, at_ms(0)}, "store_reached"},
      {RankJoined{kSecond, Rank{0}, at_ms(0)}, "rank_joined"},
      {RankLingers{kSecond, Rank{0}, Lingering::kFailed, "w", {}, at_ms(0)}, "rank_lingers"},
      {GenerationGone{kSecond, at_ms(0)}, "generation_gone"},
      {SignalReceived{2, at_ms(0)}, "signal_received"},
      {DeadlineReached{at_ms(0)}, "deadline_reached"},
      {OutputSettled{"e", at_ms(0)}, "output_settled"},
      {NodesGathered{2, {}, {"a"}, at_ms(0)}, "nodes_gathered"},
      {GatherFailed{"s", "h", 1, at_ms(0)}, "gather_failed"},
      {NodeLeaves{kSecond, NodeIndex{1}, "b", SIGTERM, at_ms(0)}, "node_leaves"},
      {NodesSilent{{NodeIndex{1}}, {"b"}, at_ms(0), std::chrono::seconds(30), at_ms(3000)}, "nodes_silent"},
      {NodesAnswer{{NodeIndex{1}}, {"b"}, std::chrono::seconds(4), at_ms(4000)}, "nodes_answer"},
      {NodeLost{kSecond, NodeIndex{1}, "b", "r", at_ms(0), true, at_ms(0)}, "node_lost"},
  };
  for (const auto& [event, name] : events) CHECK(line(event).at("event") == name);
  const std::pair<Action, const char*> actions[]{
      {GatherNodes{kSecond}, "gather_nodes"},
      {StartGeneration{kSecond}, "start_generation"},
      {RequestStop{10}, "request_stop"},
      {KillGeneration{kSecond}, "kill_generation"},
      {SweepGeneration{kSecond, 9}, "sweep_generation"},
      {SettleOutput{}, "settle_output"},
      {Notify{"words"}, "notify"},
      {ReportFailure{{}, true}, "report_failure"},
      {Finish{}, "finish"},
  };
  for (const auto& [action, name] : actions) CHECK(line(action).at("action") == name);
}

TEST_CASE("a verdict is told in full") {
  Verdict verdict;
  verdict.cause = Cause::kOutOfMemory;
  verdict.culprit = Rank{2};
  verdict.stopped = ranks({0, 1});
  verdict.summary = "s";
  verdict.exit_code = 137;
  auto text = line(ReportFailure{verdict, true});
  CHECK(text.at("restarting") == true);
  const auto& told = text.at("verdict").as_object();
  CHECK(told.at("cause") == "out_of_memory");
  CHECK(told.at("culprit") == 2);
  CHECK(told.at("stopped") == boost::json::array{0, 1});
  CHECK(told.at("exit_code") == 137);
  CHECK(told.size() == 12);
}

TEST_CASE("a line is one line of UTF-8, whatever a rank has printed") {
  auto text = journal_line(Event(OutputSettled{"a\xff\xc3\nb\xe2\x82\xac", at_ms(0)}), at_ms(0));
  CHECK(text.find('\n') == text.npos);
  CHECK(boost::json::parse(text).at("error") == "a\xef\xbf\xbd\xef\xbf\xbd\nb\xe2\x82\xac");
}

}  // namespace journal_test
