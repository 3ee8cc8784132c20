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

TEST_CASE("nodes that do not answer are named with how long, until they do or are lost") {
  auto footer = started();
  const auto silent = [&](std::vector<NodeIndex> nodes, std::vector<std::string> names, long since) {
    footer.update(run::Event{run::NodesSilent{std::move(nodes), std::move(names), at_ms(since),
                                              std::chrono::seconds(30), at_ms(since + 3000)}});
  };
  silent({NodeIndex{2}}, {"hostc"}, 1000);
  CHECK(footer.rows(at_ms(5000), 99) ==
        Rows{"taas-run 0:05 | 0 of 8 ranks up | node 2 (hostc) has not answered for 4 s"});
  silent({NodeIndex{-1}}, {"hostd"}, 2000);
  CHECK(footer.rows(at_ms(6000), 99) ==
        Rows{"taas-run 0:06 | 0 of 8 ranks up | node 2 (hostc), hostd have not answered for 5 s"});
  footer.update(run::Event{run::NodesAnswer{{NodeIndex{2}}, {"hostc"}, std::chrono::seconds(6), at_ms(7000)}});
  CHECK(footer.rows(at_ms(8000), 99) == Rows{"taas-run 0:08 | 0 of 8 ranks up | hostd has not answered for 6 s"});
  CHECK(footer.rows(at_ms(32000), 99) == Rows{"taas-run 0:32 | 0 of 8 ranks up"});
  silent({NodeIndex{3}}, {"hoste"}, 33000);
  CHECK(footer.rows(at_ms(70000), 99) ==
        Rows{"taas-run 1:10 | 0 of 8 ranks up | node 3 (hoste) has not answered for 37 s"});
  footer.update(run::Event{run::NodeLost{{}, NodeIndex{3}, "hoste", "gone", {}, false, at_ms(70000)}});
  CHECK(footer.rows(at_ms(70000), 99) == Rows{"taas-run 1:10 | 0 of 8 ranks up"});
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

}  // namespace footer_test
