#include "catch.hpp"
#include "training/spawn_ranks.hpp"

namespace collectives_test {

using taas::test::Meeting;
using taas::test::problems;
using taas::test::spawn_ranks;

TEST_CASE("Collectives give on every rank what they promise") {
  for (const std::string scenario : {"reductions", "movements", "overlapping", "identity", "types", "reduced_types"}) {
    for (int ranks = 1; ranks <= 4; ++ranks) {
      INFO(scenario << " with " << ranks << " ranks");
      CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, scenario, {.world_size = ranks})) == "");
    }
  }
}

TEST_CASE("Messages between two ranks arrive at the right one, by tag") {
  for (int ranks = 2; ranks <= 4; ++ranks) {
    INFO(ranks << " ranks");
    CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "point_to_point", {.world_size = ranks})) == "");
  }
}

TEST_CASE("Ranks that exchange tensors send and receive them at once") {
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "exchange", {.world_size = 3})) == "");
}

TEST_CASE("Waiting has a limit, and can be taken up again") {
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "patience", {.world_size = 3})) == "");
}

TEST_CASE("A wrong argument is refused by name before anything is sent") {
  for (int ranks = 1; ranks <= 2; ++ranks) {
    CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "refusals", {.world_size = ranks})) == "");
  }
}

}  // namespace collectives_test
