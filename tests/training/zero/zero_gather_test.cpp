#include "catch.hpp"
#include "training/spawn_ranks.hpp"

namespace zero_gather_test {

using taas::test::problems;
using taas::test::spawn_ranks;

TEST_CASE("Gathers that last into the next forward leave the same parameters and state") {
  for (int ranks : {1, 2, 3}) {
    INFO(ranks << " ranks");
    CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "zero_lasting_gathers", {.world_size = ranks})) == "");
  }
}

TEST_CASE("A parameter that is still being gathered cannot be used, and what needs it waits") {
  for (int ranks : {1, 2}) {
    INFO(ranks << " ranks");
    CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "zero_closed_parameters", {.world_size = ranks})) == "");
  }
}

TEST_CASE("A rank that is lost while gathers last is named where they are waited for") {
  constexpr int kRanks = 3, kKilled = 128 + 9;
  const auto results = spawn_ranks(TAAS_RANK_PROGRAM, "killed_in_lasting_gathers", {.world_size = kRanks});
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto& result = results[static_cast<std::size_t>(rank)];
    INFO("rank " << rank << ": " << result.output);
    CHECK(result.exit_code == (rank == kRanks - 1 ? kKilled : 0));
  }
}

}  // namespace zero_gather_test
