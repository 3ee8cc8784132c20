#include "catch.hpp"
#include "training/spawn_ranks.hpp"

namespace distributed_data_parallel_test {

using taas::test::problems;
using taas::test::spawn_ranks;

TEST_CASE("Gradients are the average over the ranks") {
  for (int ranks = 1; ranks <= 3; ++ranks) {
    INFO(ranks << " ranks");
    CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "average", {.world_size = ranks})) == "");
  }
}

TEST_CASE("All replicas start as that of rank 0") {
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "initial_values", {.world_size = 3})) == "");
}

TEST_CASE("no_sync accumulates on each rank alone") {
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "no_sync", {.world_size = 2})) == "");
}

TEST_CASE("An unused parameter is named, or found when asked for") {
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "unused_parameter", {.world_size = 2})) == "");
}

TEST_CASE("Replicas that differ are refused on every rank, by the name of the parameter") {
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "mismatch", {.world_size = 3})) == "");
}

TEST_CASE("Tensors are found in what forward returns") {
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "outputs", {.world_size = 2})) == "");
}

TEST_CASE("Alone the wrapper is a module and nothing more") {
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "alone", {.world_size = 1})) == "");
}

TEST_CASE("What cannot be wrapped is refused, with the reason") {
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "refused_wrappers", {.world_size = 2})) == "");
}

TEST_CASE("Errors of backward come with advice for the options of the wrapper") {
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "static_graph_advice", {.world_size = 2})) == "");
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "hidden_output", {.world_size = 2})) == "");
}

TEST_CASE("Optimizers clear gradients that are views of buckets") {
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "zero_grad_of_views", {.world_size = 2})) == "");
}

TEST_CASE("The wrapper stands for its module") {
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "module_of_wrapper", {.world_size = 2})) == "");
}

}  // namespace distributed_data_parallel_test
