#include <csignal>
#include <string>

#include "catch.hpp"
#include "training/spawn_ranks.hpp"

namespace shared_sums_test {

namespace {

using taas::test::problems;
using taas::test::spawn_ranks;

constexpr int kRanks = 3;

}  // namespace

TEST_CASE("Sums in shared memory are gloo's to the bit, and only small and dense tensors of numbers are taken") {
  for (const int ranks : {2, 3, 4}) {
    CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "shared_sums", {.world_size = ranks})) == "");
  }
}

TEST_CASE("Ranks that run apart get each sum from the parts that belong to it") {
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "shared_sums_apart", {.world_size = kRanks})) == "");
}

TEST_CASE("One rank that does not share its memory is enough for all to use gloo") {
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "shared_sums_not_wanted", {.world_size = kRanks})) == "");
}

TEST_CASE("A sum that can never be made says why") {
  for (const std::string scenario :
       {"shared_sum_of_another_size", "shared_sum_with_a_rank_that_left", "shared_sum_that_is_too_late",
        "shared_sum_in_an_aborted_group", "training_with_a_rank_that_raises", "training_with_a_rank_that_shuts_down"}) {
    INFO(scenario);
    CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, scenario, {.world_size = kRanks})) == "");
  }
}

TEST_CASE("A rank that is killed is named by those that wait for its part of a sum") {
  const auto results = spawn_ranks(TAAS_RANK_PROGRAM, "shared_sum_with_a_killed_rank", {.world_size = kRanks});
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto& result = results[static_cast<std::size_t>(rank)];
    INFO("rank " << rank << ": " << result.output);
    CHECK(result.exit_code == (rank == kRanks - 1 ? 128 + SIGKILL : 0));
  }
}

}  // namespace shared_sums_test
