#include "ui/view/report.hpp"

#include "catch.hpp"
#include "ui/helpers.hpp"

namespace report_test {

using namespace taas;
using namespace taas::ui;

using Lines = std::vector<std::string>;

TEST_CASE("a report says what failed, what followed, where to read on and what to do") {
  auto verdict = failure(3, "rank 3 exited with code 42");
  verdict.detail = {"ValueError: no data"};
  verdict.consequences = ranks({1, 2});
  verdict.stopped = ranks({0, 4, 5, 6, 7});
  verdict.log_path = "/runs/x/generation-0/rank-0003.err";
  verdict.hint = "look at the log";
  CHECK(failure_report(verdict, Style()) ==
        Lines{"taas-run: rank 3 exited with code 42", "    ValueError: no data", "  also failed: ranks 1-2 (after it)",
              "  stopped: 5 ranks", "  log: /runs/x/generation-0/rank-0003.err", "  hint: look at the log"});
}

TEST_CASE("control characters in names are written out, those of the rank's own words are not") {
  auto verdict = failure(0, "cannot execute a\x1b[31m");
  verdict.detail = {"\x1b[31mred\x1b[0m"};
  verdict.log_path = "/runs/\n";
  CHECK(failure_report(verdict, Style()) ==
        Lines{"taas-run: cannot execute a\\x1b[31m", "    \x1b[31mred\x1b[0m", "  log: /runs/\\n"});
}

TEST_CASE("a report says nothing about what did not happen") {
  CHECK(failure_report(failure(0, "rank 0 exited with code 1"), Style()) ==
        Lines{"taas-run: rank 0 exited with code 1"});
}

TEST_CASE("paths are shown as they are called in the user's folder, and a folder of logs is called one") {
  auto verdict = failure(0, "rank 0 raised OSError: /data/data.bin");
  verdict.detail = {"  File \"/data/train.py\", line 5, in <module>", "    open('/data/data.bin')",
                    "  File \"/home/data/lib.py\", line 1"};
  verdict.log_path = "/data/taas-runs/x/generation-0/";
  verdict.hint = "see /data/a.err, /database/b.err";
  CHECK(failure_report(verdict, Style(), nullptr, "/data") ==
        Lines{"taas-run: rank 0 raised OSError: /data/data.bin", "      File \"train.py\", line 5, in <module>",
              "        open('/data/data.bin')", "      File \"/home/data/lib.py\", line 1",
              "  logs: taas-runs/x/generation-0/", "  hint: see a.err, /database/b.err"});
}

TEST_CASE("a pause before a restart is told in seconds") {
  auto told = [](long ms) { return describe(Restart{8, 1, 3, std::chrono::milliseconds(ms)}); };
  CHECK(told(0) == "restarting all 8 ranks, restart 1 of 3");
  CHECK(told(40) == "restarting all 8 ranks, restart 1 of 3");
  CHECK(told(4470) == "restarting all 8 ranks in 4.5 s, restart 1 of 3");
  CHECK(told(3600000) == "restarting all 8 ranks in 3600 s, restart 1 of 3");
}

TEST_CASE("a restart is announced below the report") {
  Restart restart{8, 1, 3};
  CHECK(failure_report(failure(0, "rank 0 exited with code 1"), Style(), &restart).back() ==
        "taas-run: restarting all 8 ranks, restart 1 of 3");
}

TEST_CASE("a report is never longer than twelve lines") {
  auto verdict = failure(3, "rank 3 raised ValueError");
  for (int i = 0; i < 40; ++i) verdict.detail.push_back("line " + std::to_string(i));
  verdict.consequences = ranks({1});
  verdict.stopped = ranks({0});
  verdict.log_path = "/x";
  verdict.hint = "h";
  Restart restart{8, 1, 3};
  auto lines = failure_report(verdict, Style(), &restart);
  REQUIRE(lines.size() == kMaxReportLines);
  CHECK(lines[1] == "    line 0");
  CHECK(lines[2] == "    ...");
  CHECK(lines[6] == "    line 39");
  CHECK(lines[7] == "  also failed: rank 1 (after it)");
  CHECK(lines[8] == "  stopped: 1 rank");
}

TEST_CASE("colour changes no text") {
  auto verdict = failure(3, "rank 3 exited with code 42");
  verdict.hint = "h";
  auto lines = failure_report(verdict, Style(true));
  CHECK(lines[0] == "\x1b[1mtaas-run:\x1b[0m \x1b[1;31mrank 3 exited with code 42\x1b[0m");
  CHECK(lines[1] == "  \x1b[1mhint:\x1b[0m h");
}

TEST_CASE("a good end names its time and what was published") {
  CHECK(success_line(std::chrono::milliseconds(12340), {}, Style()) == "taas-run: done in 12.3 s");
  CHECK(success_line(std::chrono::seconds(1), {"/runs/x/output", 2}, Style()) ==
        "taas-run: done in 1.0 s, 2 files in /runs/x/output");
  CHECK(success_line(std::chrono::seconds(1), {"/o", 1}, Style()) == "taas-run: done in 1.0 s, 1 file in /o");
  CHECK(success_line(std::chrono::seconds(1), {"/data/o", 1}, Style(), "/data") ==
        "taas-run: done in 1.0 s, 1 file in o");
}

}  // namespace report_test
