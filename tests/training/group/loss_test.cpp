#include <csignal>
#include <cstdlib>
#include <string>

#include "catch.hpp"
#include "training/spawn_ranks.hpp"

namespace loss_test {

namespace {

using taas::test::spawn_ranks;

constexpr int kRanks = 3;

/// Twenty times with TAAS_FULL, which makes 180 kills.
int repeats() { return std::getenv("TAAS_FULL") ? 20 : 1; }

/// The last rank is the one that is killed.
void check_kill(const std::string& scenario) {
  const auto results = spawn_ranks(TAAS_RANK_PROGRAM, scenario, {.world_size = kRanks});
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto& result = results[static_cast<std::size_t>(rank)];
    INFO(scenario << ", rank " << rank << ": " << result.output);
    CHECK(result.exit_code == (rank == kRanks - 1 ? 128 + SIGKILL : 0));
    if (std::getenv("TAAS_FULL")) WARN(scenario << ": " << result.output);
  }
}

}  // namespace

TEST_CASE("A rank that is killed in the middle of a collective is named by all others") {
  for (int i = 0; i < repeats(); ++i) {
    for (const std::string scenario : {"all_reduce", "broadcast", "all_gather", "reduce_scatter", "gather", "scatter",
                                       "barrier", "send_recv", "backward"}) {
      check_kill("killed_in_" + scenario);
    }
  }
}

TEST_CASE("A rank that leaves is told from those that give up because of it") {
  for (int i = 0; i < repeats(); ++i) {
    for (const std::string scenario : {"raises", "exits", "returns"}) {
      CHECK(taas::test::problems(spawn_ranks(TAAS_RANK_PROGRAM, scenario, {.world_size = kRanks})) == "");
    }
  }
}

TEST_CASE("A process that gloo ends, since ranks give different sizes, says so in its last line") {
  const auto results = spawn_ranks(TAAS_RANK_PROGRAM, "larger_tensor", {.world_size = 2});
  const auto& output = results[0].output;
  INFO(output);
  CHECK(results[0].exit_code == 128 + SIGABRT);
  const auto end = output.find_last_not_of('\n');
  const auto line = output.substr(output.rfind('\n', end) + 1);
  CHECK(line ==
        "taas: error: rank 0, all_reduce of (4) Float: 4096 bytes came where 4 were expected: another rank is in "
        "another collective, or in this one with another size; to see which, set TORCH_DISTRIBUTED_DEBUG=DETAIL "
        "(InitOptions::check_collectives)\n");
}

}  // namespace loss_test
