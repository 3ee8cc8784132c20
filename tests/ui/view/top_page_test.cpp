#include "ui/view/top_page.hpp"

#include "catch.hpp"

namespace top_page_test {

using namespace taas;
using namespace taas::ui;

namespace {

run::LookReport training(int ranks, int nodes = 1) {
  run::LookReport report;
  report.run = "r1";
  report.state = "moves";
  report.world_size = ranks;
  report.nodes = nodes;
  for (int i = 0; i < ranks; ++i) {
    run::RankReport rank;
    rank.rank = Rank{i};
    rank.node = nodes > 1 ? "host" + std::to_string(i % nodes) : "";
    rank.phase = "training";
    rank.line = "train.py:88";
    rank.cpu = 1.04;
    rank.memory_bytes = std::uint64_t{3} << 30;
    report.ranks.push_back(rank);
  }
  return report;
}

}  // namespace

TEST_CASE("each rank has a line") {
  CHECK(top_page(training(2), Style(), 24, 80) ==
        "run r1, 2 ranks: moves\n"
        " rank  phase     line           cpu     memory\n"
        "    0  training  train.py:88    1.0    3.0 GiB\n"
        "    1  training  train.py:88    1.0    3.0 GiB\n");
}

TEST_CASE("columns are there for what is known, and who is slow is marked") {
  auto report = training(4, 2);
  for (auto& rank : report.ranks) rank.steps = 10, rank.steps_per_s = 3.2, rank.data_wait = 0.014;
  report.ranks[2].steps_per_s = 2.1;
  report.ranks[3].phase.clear();
  CHECK(top_page(report, Style(), 24, 120) ==
        "run r1, 4 ranks on 2 nodes: moves\n"
        " rank  node   phase     line         steps/s    cpu     memory  data wait\n"
        "    0  host0  training  train.py:88      3.2    1.0    3.0 GiB        1 %\n"
        "    1  host1  training  train.py:88      3.2    1.0    3.0 GiB        1 %\n"
        "    2  host0  training  train.py:88      2.1    1.0    3.0 GiB        1 %  slow\n"
        "    3  host1            train.py:88      3.2    1.0    3.0 GiB        1 %  no answer\n");
}

TEST_CASE("a terminal has room for those that stand out, and the others as far as it goes") {
  auto report = training(64);
  report.culprits = {Rank{50}};
  const auto page = top_page(report, Style(), 23, 80);
  CHECK(std::count(page.begin(), page.end(), '\n') == 22);
  CHECK(page.find("\n   50  training  train.py:88    1.0    3.0 GiB  waited for\n    0  ") != page.npos);
  CHECK(page.find("and 45 more; those that stand out come first") != page.npos);
  std::size_t begin = 0;
  for (auto end = page.find('\n'); end != page.npos; begin = end + 1, end = page.find('\n', begin)) {
    CHECK(end - begin <= 80);
  }
}

TEST_CASE("GPUs are shown where the driver tells of them") {
  auto report = training(1);
  report.ranks[0].gpu_percent = 97;
  report.ranks[0].gpu_bytes = std::uint64_t{60} << 30;
  CHECK(top_page(report, Style(), 24, 80) ==
        "run r1, 1 rank: moves\n"
        " rank  phase     line           cpu     memory              GPU\n"
        "    0  training  train.py:88    1.0    3.0 GiB   97 %, 60.0 GiB\n");
}

TEST_CASE("a narrow terminal cuts lines") {
  const auto page = top_page(training(1), Style(), 24, 20);
  CHECK(page.find("    0  training  tra\n") != page.npos);
}

}  // namespace top_page_test
