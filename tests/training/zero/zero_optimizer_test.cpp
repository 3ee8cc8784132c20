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
  on_ranks("zero_parity", 1, 4);
}

TEST_CASE("A consolidated state can be loaded, sharded or whole") { on_ranks("zero_reload", 2, 4); }

TEST_CASE("Each rank writes a file, and a save that is not whole is refused") { on_ranks("zero_files", 1, 3); }

TEST_CASE("Each rank has its part of the state, from the first step on") { on_ranks("zero_memory", 3, 4); }

TEST_CASE("What a sharded optimizer cannot do is refused by name") { on_ranks("zero_refusals", 1, 2); }

}  // namespace zero_optimizer_test
