#include "catch.hpp"
#include "training/spawn_ranks.hpp"

namespace sub_groups_test {

using taas::test::Meeting;
using taas::test::problems;
using taas::test::spawn_ranks;

TEST_CASE("Some ranks make a group, by a list, by colors, and along a mesh") {
  for (const std::string scenario : {"sub_groups", "split_groups", "mesh"}) {
    for (const auto meeting : {Meeting::kServed, Meeting::kRankZero}) {
      INFO(scenario);
      CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, scenario, {.world_size = 4, .meeting = meeting})) == "");
    }
  }
}

TEST_CASE("Groups that cannot be are refused by name") {
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "refused_groups", {.world_size = 4})) == "");
}

TEST_CASE("Ranks that compare what they do find what differs") {
  for (const std::string scenario : {"mismatches", "mismatched_operations"}) {
    CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, scenario, {.world_size = 2})) == "");
  }
}

}  // namespace sub_groups_test
