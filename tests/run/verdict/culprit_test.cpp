#include "run/verdict/culprit.hpp"

#include <csignal>

#include "catch.hpp"
#include "run/scenario.hpp"

namespace culprit_test {

using namespace taas;
using namespace taas::run;

namespace {

RankExited exited(int rank, long when, ExitStatus status, Evidence evidence = {}) {
  return {Generation{0}, Rank{rank}, status, std::move(evidence), at_ms(when)};
}

}  // namespace

TEST_CASE("who failed by itself is to blame before who lost a peer, though it ended later") {
  auto record = all_living(2);
  record.exited(exited(1, 10, {1}, lost_peer(5)));
  record.exited(exited(0, 20, {7}));
  auto culprit = find_culprit(record);
  CHECK(culprit.rank == Rank{0});
  CHECK(culprit.strength == Strength::kOwn);
}

TEST_CASE("of two failures the earlier one is to blame") {
  auto record = all_living(2);
  record.exited(exited(1, 10, {1}));
  record.exited(exited(0, 20, {1}));
  CHECK(find_culprit(record).rank == Rank{1});
}

TEST_CASE("a rank that the launcher stopped is not to blame") {
  auto record = all_living(2);
  record.stop(SIGTERM, at_ms(10));
  record.exited(exited(0, 20, {0, SIGTERM}));
  CHECK(ended_by_us(record.rank(Rank{0}), record));
  CHECK(find_culprit(record).strength == Strength::kNone);
}

TEST_CASE("a lost node is to blame for its ranks") {
  auto record = all_living(2);
  record.lost({Generation{0}, NodeIndex{1}, "hostb", "no sign of life", at_ms(0), false, at_ms(0)},
              {NodeIndex{0}, NodeIndex{1}});
  auto culprit = find_culprit(record);
  REQUIRE(culprit.node != nullptr);
  CHECK(culprit.node->node == NodeIndex{1});
}

TEST_CASE("a rank that ended well before the stop may be waited for in vain") {
  auto record = all_living(2);
  CHECK_FALSE(somebody_finished_early(record));
  record.exited(exited(0, 10, {}));
  CHECK(somebody_finished_early(record));
}

}  // namespace culprit_test
