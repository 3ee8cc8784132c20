#include "ui/view/footer.hpp"

#include "catch.hpp"
#include "ui/helpers.hpp"

namespace footer_test {

using namespace taas;
using namespace taas::ui;

using Rows = std::vector<std::string>;

namespace {

Footer started(int world = 8, int generation = 0) {
  auto options = options_for(world);
  options.max_restarts = 3;
  Footer footer(options);
  footer.update(run::Action{run::StartGeneration{Generation{generation}}});
  return footer;
}

}  // namespace

TEST_CASE("the footer stands only while ranks run") {
  Footer footer(options_for(8));
  CHECK(footer.rows(at_ms(0), 80).empty());
  footer.update(run::Action{run::StartGeneration{}});
  CHECK(footer.rows(at_ms(0), 80).size() == 1);
  footer.update(run::Action{run::Finish{}});
  CHECK(footer.rows(at_ms(0), 80).empty());
}

TEST_CASE("the footer counts ranks and time") {
  auto footer = started();
  CHECK(footer.rows(at_ms(0), 80) == Rows{"taas-run 0:00 | 0 of 8 ranks up"});
  for (int rank = 0; rank < 3; ++rank) footer.update(run::Event{run::RankSpawned{{}, Rank{rank}, 1, at_ms(0)}});
  footer.update(run::Event{run::RankJoined{{}, Rank{1}, at_ms(0)}});
  footer.update(run::Event{run::RankExited{{}, Rank{2}, {}, {}, at_ms(0)}});
  CHECK(footer.rows(at_ms(65000), 80) == Rows{"taas-run 1:05 | 2 of 8 ranks up, 1 joined"});
  CHECK(footer.rows(at_ms(3600000), 80) == Rows{"taas-run 1:00:00 | 2 of 8 ranks up, 1 joined"});
}

TEST_CASE("the footer says whose end is waited for and until when, and that output is published") {
  auto footer = started(4);
  for (int rank = 0; rank < 4; ++rank) footer.update(run::Event{run::RankSpawned{{}, Rank{rank}, 1, at_ms(0)}});
  footer.update(run::Action{run::SetDeadline{at_ms(30000)}});
  CHECK(footer.rows(at_ms(1000), 80) == Rows{"taas-run 0:01 | 4 of 4 ranks up"});
  footer.update(run::Action{run::SignalRanks{{}, ranks({0, 1, 2, 3}), 15}});
  footer.update(run::Event{run::RankExited{{}, Rank{0}, {}, {}, at_ms(0)}});
  footer.update(run::Event{run::RankExited{{}, Rank{2}, {}, {}, at_ms(0)}});
  CHECK(footer.rows(at_ms(8001), 80) == Rows{"taas-run 0:08 | stopping: ranks 1,3 left, killed in 22 s"});
  footer.update(run::Action{run::KillGeneration{}});
  footer.update(run::Event{run::RankExited{{}, Rank{1}, {}, {}, at_ms(0)}});
  CHECK(footer.rows(at_ms(30000), 80) == Rows{"taas-run 0:30 | stopping: rank 3 left, killed"});
  footer.update(run::Event{run::RankExited{{}, Rank{3}, {}, {}, at_ms(0)}});
  footer.update(run::Action{run::SettleOutput{true}});
  CHECK(footer.rows(at_ms(31000), 80) == Rows{"taas-run 0:31 | publishing what the ranks wrote"});
}

TEST_CASE("the footer says what ranks are about, and how long it takes them to begin") {
  auto footer = started(2);
  footer.update(run::RunPhase{"importing torch", "", true}, at_ms(1000));
  CHECK(footer.rows(at_ms(1500), 80) == Rows{"taas-run 0:01 | 0 of 2 ranks up | importing torch"});
  footer.update(run::RunPhase{"importing torch", "", true}, at_ms(4000));
  CHECK(footer.rows(at_ms(17000), 80) == Rows{"taas-run 0:17 | 0 of 2 ranks up | importing torch, 16 s"});
  for (int rank = 0; rank < 2; ++rank) {
    footer.update(run::Event{run::RankSpawned{{}, Rank{rank}, 1, at_ms(0)}});
    footer.update(run::Event{run::RankJoined{{}, Rank{rank}, at_ms(0)}});
  }
  footer.update(run::RunPhase{"training", " at train.py:88, 3.2 steps/s, rank 1 2.1"}, at_ms(20000));
  CHECK(footer.rows(at_ms(20000), 80) ==
        Rows{"taas-run 0:20 | 2 ranks | training at train.py:88, 3.2 steps/s, rank 1 2.1"});
  footer.update(run::Action{run::StartGeneration{Generation{1}}});
  CHECK(footer.rows(at_ms(21000), 80) == Rows{"taas-run 0:21 | 0 of 2 ranks up"});
}

TEST_CASE("a restart begins counting anew") {
  auto footer = started();
  footer.update(run::Event{run::RankSpawned{{}, Rank{0}, 1, at_ms(0)}});
  footer.update(run::Action{run::ReportFailure{{}, true, 1}});
  footer.update(run::Action{run::StartGeneration{Generation{1}}});
  CHECK(footer.rows(at_ms(0), 80) == Rows{"taas-run 0:00 | 0 of 8 ranks up | restart 1 of 3"});
}

TEST_CASE("a lost node that is replaced costs no restart, and the world may be another one") {
  auto footer = started();
  footer.update(run::Action{run::ReportFailure{{}, true, 0}});
  footer.update(run::Event{run::NodesGathered{4, {}, {}, at_ms(0)}});
  footer.update(run::Action{run::StartGeneration{Generation{1}}});
  CHECK(footer.rows(at_ms(0), 80) == Rows{"taas-run 0:00 | 0 of 4 ranks up"});
}

TEST_CASE("the lowest rank's bar is shown above") {
  auto footer = started(1);
  footer.set_progress(Rank{2}, "two");
  CHECK(footer.rows(at_ms(0), 80).front() == "two");
  footer.set_progress(Rank{0}, "zero");
  footer.set_progress(Rank{2}, "two again");
  CHECK(footer.rows(at_ms(0), 80) == Rows{"zero", "taas-run 0:00 | 0 of 1 rank up"});
  footer.clear_progress(Rank{2});
  CHECK(footer.rows(at_ms(0), 80).size() == 2);
  footer.clear_progress(Rank{0});
  CHECK(footer.rows(at_ms(0), 80).size() == 1);
}

TEST_CASE("rows fit the terminal") {
  auto footer = started();
  footer.set_progress(Rank{0}, "a bar that is much too long");
  CHECK(footer.rows(at_ms(0), 8) == Rows{"a bar th", "taas-run"});
}

TEST_CASE("the footer says how much is published, once that is known") {
  auto footer = started(1);
  footer.update(run::Action{run::SettleOutput{true}});
  CHECK(footer.rows(at_ms(1000), 80) == Rows{"taas-run 0:01 | publishing what the ranks wrote"});
  footer.update(run::OutputProgress{3, 4LL << 30, (6LL << 30) / 5, at_ms(2000)});
  CHECK(footer.rows(at_ms(2000), 80) == Rows{"taas-run 0:02 | publishing 3 files, 1.2 of 4.0 GiB"});
}

TEST_CASE("nodes that take long to come have a row, those of one machine none") {
  Footer footer(options_for(8));
  footer.update(run::Action{run::GatherNodes{}});
  CHECK(footer.rows(at_ms(999), 80).empty());
  CHECK(footer.first_row_at() == at_ms(1000));
  CHECK(footer.rows(at_ms(12000), 80) == Rows{"taas-run 0:12 | gathering nodes"});
  footer.update(run::Action{run::StartGeneration{}});
  CHECK_FALSE(footer.first_row_at());
  CHECK(footer.rows(at_ms(12000), 80) == Rows{"taas-run 0:12 | 0 of 8 ranks up"});
}

}  // namespace footer_test
