#include "catch.hpp"
#include "training/spawn_ranks.hpp"

namespace join_test {

using taas::test::problems;
using taas::test::spawn_ranks;

TEST_CASE("Ranks with different numbers of inputs end with the model of the last") {
  for (int ranks = 1; ranks <= 3; ++ranks) {
    INFO(ranks << " ranks");
    CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "uneven_inputs", {.world_size = ranks})) == "");
  }
}

TEST_CASE("All ranks throw when one has no inputs left, where that is asked for") {
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "early_termination", {.world_size = 3})) == "");
}

TEST_CASE("An exception leaves a join without a collective") {
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "join_unwinds", {.world_size = 2})) == "");
}

TEST_CASE("After a join gradients are divided by the world size again") {
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "after_join", {.world_size = 2})) == "");
}

TEST_CASE("A join has joinables of one group, and ends once") {
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "join_arguments", {.world_size = 2})) == "");
}

TEST_CASE("All joinables of a join are stood in for") {
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "two_joinables", {.world_size = 3})) == "");
}

}  // namespace join_test
