#include "ui/view/check_page.hpp"

#include "catch.hpp"

namespace check_page_test {

using namespace taas;
using namespace taas::ui;

TEST_CASE("findings are lines, and the last line says what was looked at") {
  run::CheckReport report;
  report.nodes.resize(2);
  report.nodes[0].facts.gpus.visible = 8;
  report.nodes[1].facts.gpus.visible = 8;
  report.nodes[1].facts.program.python = "3.11.2";
  report.nodes[1].facts.program.torch = "2.9.1";
  CHECK(check_page(report, Style()) == "check: no error on 2 nodes with 16 GPUs, Python 3.11.2, torch 2.9.1\n");
  report.findings = {{run::Severity::kError, "program", {"b"}, "train.py: no such file", ""},
                     {run::Severity::kWarning, "output", {"a"}, "/runs has 900 MiB left", "free some of it"}};
  CHECK(check_page(report, Style()) ==
        "error: b: train.py: no such file\n"
        "warning: a: /runs has 900 MiB left; free some of it\n"
        "check: 1 error, 1 warning on 2 nodes with 16 GPUs, Python 3.11.2, torch 2.9.1\n");
  report.findings.clear();
  report.nodes[0].makes_data = true;
  CHECK(check_page(report, Style()) ==
        "check: no error on 1 node with 8 GPUs and 1 CPU machine, Python 3.11.2, torch 2.9.1\n");
}

TEST_CASE("where no node could be looked at, nothing is said of nodes") {
  run::CheckReport report;
  report.findings = {{run::Severity::kError, "nodes", {}, "b: connection refused", ""}};
  CHECK(check_page(report, Style()) == "error: b: connection refused\ncheck: 1 error\n");
}

}  // namespace check_page_test
