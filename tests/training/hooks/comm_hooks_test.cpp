#include "catch.hpp"
#include "training/spawn_ranks.hpp"

namespace comm_hooks_test {

using taas::test::problems;
using taas::test::spawn_ranks;

TEST_CASE("A hook of the program's own gets each bucket, and makes the gradients") {
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "own_hook", {.world_size = 2})) == "");
}

TEST_CASE("A model has one communication hook, and it is one") {
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "one_hook", {.world_size = 2})) == "");
}

TEST_CASE("What a hook throws comes out of backward") {
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "hook_throws", {.world_size = 2})) == "");
}

TEST_CASE("What a hook gives is checked, by the bucket that it is for") {
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "hook_results", {.world_size = 2})) == "");
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "hook_result_of_later_bucket", {.world_size = 2})) == "");
}

TEST_CASE("The gradients are what the hook's tensor shows, whatever view it is") {
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "hook_result_is_view", {.world_size = 2})) == "");
}

TEST_CASE("PowerSGD counts what it sends, and refuses options that do not fit") {
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "power_sgd", {.world_size = 2})) == "");
}

TEST_CASE("PowerSGD goes on from a state that was saved, in a wrapper that is new") {
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "power_sgd_resumed", {.world_size = 2})) == "");
}

TEST_CASE("Averagers take the group of the largest period that is due, and leave out what has no gradient") {
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "model_averaging", {.world_size = 2})) == "");
}

TEST_CASE("Alone a model trains as without a hook, and one that steps parameters is refused") {
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "hook_alone", {.world_size = 1})) == "");
}

}  // namespace comm_hooks_test
