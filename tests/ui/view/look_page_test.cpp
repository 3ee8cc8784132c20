#include "ui/view/look_page.hpp"

#include "catch.hpp"

namespace look_page_test {

using namespace taas;
using namespace taas::ui;

namespace {

run::RankReport rank(int number, const std::string& activity, const std::string& doing, const std::string& place) {
  run::RankReport report;
  report.rank = Rank{number};
  report.pid = 800 + number;
  report.node = number < 16 ? "a" : "b";
  report.activity = activity;
  report.doing = doing;
  report.place = place;
  return report;
}

run::LookReport stuck() {
  run::LookReport report;
  report.run = "20261125-030112-ab12cd";
  report.state = "stuck";
  report.since_s = 130;
  report.world_size = 32;
  report.nodes = 2;
  report.text =
      "ranks 0-16, 18-31 wait in all_reduce (train.py:88) for rank 17 on node 1 (b) in tokenize (data.py:41), which "
      "sleeps";
  report.culprits = {Rank{17}};
  for (int i = 0; i < 32; ++i) {
    if (i != 17) report.ranks.push_back(rank(i, "waits", "waits", "all_reduce (train.py:88)"));
  }
  report.ranks.push_back(rank(17, "blocked", "holds the GIL in C code, asleep", "tokenize (data.py:41)"));
  report.ranks.back().own_frames = {{"tokenize", "/home/me/data.py", 41}, {"collate", "/home/me/train.py", 60}};
  return report;
}

}  // namespace

TEST_CASE("a run that hangs is shown with whom it waits for first") {
  CHECK(look_page(stuck(), Style()) ==
        "run 20261125-030112-ab12cd, 32 ranks on 2 nodes: STUCK for 2 min 10 s\n"
        "  rank 17 (b, pid 817) in tokenize (data.py:41): holds the GIL in C code, asleep\n"
        "      tokenize                 data.py:41\n"
        "      collate                  train.py:60\n"
        "  ranks 0-16,18-31 in all_reduce (train.py:88): wait\n"
        "  next: taas-run look --rank 17 shows all of its threads\n");
}

TEST_CASE("where those who are waited for have ended, a line says so") {
  auto report = stuck();
  report.text = "rank 1 waits in all_reduce (train.py:88) for rank 0, which has ended well";
  report.culprits = {Rank{0}};
  report.ended_well = {Rank{0}};
  report.ranks = {rank(1, "waits", "waits", "all_reduce (train.py:88)")};
  report.since_s = 45;
  CHECK(look_page(report, Style()) ==
        "run 20261125-030112-ab12cd, 32 ranks on 2 nodes: STUCK for 45 s\n"
        "  rank 1 waits in all_reduce (train.py:88) for rank 0, which has ended well\n"
        "  rank 1 (a, pid 801) in all_reduce (train.py:88): waits\n"
        "  rank 0 ended well\n");
}

TEST_CASE("a run that moves, one without ranks, and hosts that are silent") {
  auto report = stuck();
  report.state = "moves";
  report.text.clear();
  report.culprits.clear();
  report.ranks = {rank(0, "busy", "is busy", "step (train.py:80)"), rank(1, "busy", "is busy", "step (train.py:80)")};
  report.generation = 2;
  report.silent = {"c"};
  report.ended_well = {Rank{5}};
  CHECK(look_page(report, Style()) ==
        "run 20261125-030112-ab12cd, 32 ranks on 2 nodes, after 2 restarts: moves\n"
        "  ranks 0-1 in step (train.py:80): are busy\n"
        "  rank 5 ended well\n"
        "  no answer in time from c\n");
  report = {};
  report.run = "x";
  report.state = "idle";
  report.world_size = 1;
  CHECK(look_page(report, Style()) == "run x, 1 rank: no rank is running now\n");
}

TEST_CASE("one rank is shown with its threads and processes; what a file is called does nothing to a terminal") {
  auto report = stuck();
  report.state = "moves";
  report.text.clear();
  report.ranks = {report.ranks.back()};
  run::SeenProcess process;
  process.pid = 817;
  run::SeenThread main;
  main.tid = 817;
  main.name = "python3";
  main.wait = run::Wait::kTime;
  main.waits_for = "a time to pass";
  main.holds_gil = true;
  main.frames = {{"tokenize", "/home/me/\x1b[31mdata.py", 41}};
  run::SeenThread idle;
  idle.tid = 818;
  idle.waits_for = "an event";
  process.threads = {main, idle};
  report.ranks[0].processes = {process};
  report.ranks[0].own_frames.clear();
  CHECK(look_page(report, Style()) ==
        "run 20261125-030112-ab12cd, 32 ranks on 2 nodes\n"
        "  rank 17 (b, pid 817) in tokenize (data.py:41): holds the GIL in C code, asleep\n"
        "  process 817\n"
        "    thread 817 (python3), holds the GIL: waits for a time to pass\n"
        "      tokenize                 /home/me/\\x1b[31mdata.py:41\n"
        "    1 thread outside Python: waits for an event\n");
}

}  // namespace look_page_test
