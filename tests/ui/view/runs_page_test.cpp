#include "ui/view/runs_page.hpp"

#include "base/text.hpp"
#include "catch.hpp"

namespace runs_page_test {

using namespace taas;
using namespace taas::ui;

namespace {

RunSummary run(int number, const std::string& ended, int exit_code) {
  RunSummary run;
  run.number = number;
  run.id = "20261127-031712-ab12cd";
  run.state = exit_code < 0 ? "running" : "ended";
  run.ended = ended;
  run.exit_code = exit_code;
  run.seconds = 62;
  run.began = "03:17";
  run.ranks = 8;
  run.has_record = true;
  run.record.command = {"taas-run", "train.py", "--lr", "0.1"};
  return run;
}

}  // namespace

TEST_CASE("runs are a table that fits the terminal") {
  auto lost = run(2, "", -1);
  lost.state = "lost";
  auto old = run(0, "ok", 0);
  old.has_record = false;
  const auto page = runs_page({run(31, "rank 2 on node 1 (b) raised ValueError: loss is nan, and a long way more", 1),
                               run(30, "ok", 0), run(3, "", -1), lost, old},
                              Style(), 100);
  CHECK(page ==
        "    #  when   ended                             ranks      time  command\n"
        "   31  03:17  rank 2: ValueError: loss is n...      8    1m 02s  train.py --lr 0.1\n"
        "   30  03:17  ok                                    8    1m 02s  train.py --lr 0.1\n"
        "    3  03:17  running                               8    1m 02s  train.py --lr 0.1\n"
        "    2  03:17  lost: its launcher was killed         8    1m 02s  train.py --lr 0.1\n"
        "    -  03:17  ok                                    8    1m 02s  20261127-031712-ab12cd\n");
  CHECK(runs_page({}, Style(), 0) == "    #  when  ended  ranks      time  command\n");
}

TEST_CASE("no line of a table is longer than a terminal of 80 columns") {
  auto failed = run(31, "rank 2 on node 1 (b) raised ValueError: loss is nan, and a long way more", 1);
  failed.record.command.emplace_back("--with-many-more-words");
  for (const auto* began : {"03:17", "Nov 27 03:17"}) {
    failed.began = began;
    for (auto line : split(runs_page({failed}, Style(), 80), '\n')) CHECK(line.size() <= 80);
  }
}

TEST_CASE("where columns are few, the command begins with the program") {
  auto long_one = run(31, "rank 2 on node 1 (b) raised ValueError: loss is nan, and a long way more", 1);
  long_one.record.command = {"taas-run", "--nproc-per-node", "8", "train.py", "--lr", "0.1"};
  CHECK(runs_page({long_one}, Style(), 80).ends_with("  train.py --lr 0.1\n"));
  CHECK(runs_page({long_one}, Style(), 120).ends_with("  --nproc-per-node 8 train.py --lr 0.1\n"));
}

TEST_CASE("what a command contains does nothing to a terminal") {
  auto odd = run(1, "\x1b[2J", 1);
  odd.record.command = {"taas-run", "a\nb\x1b]0;x\x07"};
  const auto page = runs_page({odd}, Style(), 200);
  CHECK(page.find('\x1b') == std::string::npos);
  CHECK(std::count(page.begin(), page.end(), '\n') == 2);
}

TEST_CASE("durations are short") {
  CHECK(short_duration(0.31) == "0.3 s");
  CHECK(short_duration(38.4) == "38 s");
  CHECK(short_duration(62) == "1m 02s");
  CHECK(short_duration(2 * 3600 + 13 * 60) == "2h 13m");
}

}  // namespace runs_page_test
