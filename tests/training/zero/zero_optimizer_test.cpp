#include <cstdlib>

#include "catch.hpp"
#include "training/spawn_ranks.hpp"

namespace zero_optimizer_test {

using taas::test::problems;
using taas::test::spawn_ranks;

void on_ranks(const char* scenario, int least, int most) {
  for (int ranks = least; ranks <= most; ++ranks) {
    INFO(ranks << " ranks");
    CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, scenario, {.world_size = ranks})) == "");
  }
}

TEST_CASE("A sharded optimizer's parameters and state are those of DDP with the whole one") {
  for (int ranks : {2, 4}) on_ranks("zero_parity", ranks, ranks);
  if (std::getenv("TAAS_FULL")) {
    for (int ranks : {1, 3}) on_ranks("zero_parity", ranks, ranks);
  }
}

TEST_CASE("With reduce-scatter they are the same for two ranks, and close for more") { on_ranks("zero_scatter", 2, 4); }

TEST_CASE("Gradients that are spread over the ranks are clipped by their common norm") { on_ranks("zero_clip", 1, 3); }

TEST_CASE("A consolidated state can be loaded, sharded or whole") { on_ranks("zero_reload", 2, 4); }

TEST_CASE("A sharded state goes on in a world of another size, to the bit") {
  on_ranks("first_zero_world", 2, 2);
  on_ranks("second_zero_world", 8, 8);
  on_ranks("third_zero_world", 4, 4);
  on_ranks("forget_zero_worlds", 1, 1);
}

TEST_CASE("Each rank has its share of the state, from the first step on") { on_ranks("zero_memory", 3, 4); }

TEST_CASE("What a sharded optimizer cannot do is refused by name") { on_ranks("zero_refusals", 1, 2); }

TEST_CASE("A step without gradients changes nothing, as torch's does") { on_ranks("zero_without_gradients", 1, 2); }

TEST_CASE("A step with gradients of no_sync() alone is refused on all ranks") { on_ranks("zero_not_averaged", 1, 2); }

TEST_CASE("What a branch accumulated counts also where the last backward does not use it") {
  on_ranks("zero_accumulated_branch", 2, 3);
}

TEST_CASE("After a backward that failed the next one is whole") { on_ranks("zero_failed_backward", 1, 2); }

TEST_CASE("With uneven inputs a sharded optimizer ends with the parameters and state of the whole one") {
  for (int ranks : {2, 4}) on_ranks("zero_join_parity", ranks, ranks);
}

TEST_CASE("Ranks without inputs clip their shares as the others do") { on_ranks("zero_join_clip", 1, 3); }

TEST_CASE("A sharded optimizer's join ends early where that is asked for") { on_ranks("zero_join_early", 2, 3); }

}  // namespace zero_optimizer_test
