#include <string>

#include "catch.hpp"
#include "training/spawn_ranks.hpp"

namespace mixed_precision_test {

/// With two ranks, and alone, where nothing is summed.
std::string problems_of(const std::string& scenario) {
  const auto together = taas::test::problems(taas::test::spawn_ranks(TAAS_RANK_PROGRAM, scenario, {.world_size = 2}));
  return together + taas::test::problems(taas::test::spawn_ranks(TAAS_RANK_PROGRAM, scenario, {.world_size = 1}));
}

TEST_CASE("Forward sees low parameters and inputs, the optimizer full parameters and gradients") {
  CHECK(problems_of("precision_of_parameters") == "");
}

TEST_CASE("Evaluation leaves parameters of full precision") { CHECK(problems_of("precision_in_evaluation") == ""); }

TEST_CASE("Gradients can be summed in a type of their own") { CHECK(problems_of("precision_of_the_sum") == ""); }

TEST_CASE("Floating point buffers change their type for good") { CHECK(problems_of("precision_of_buffers") == ""); }

TEST_CASE("Low gradients are accumulated until a backward reduces them") {
  CHECK(problems_of("precision_of_accumulated_gradients") == "");
}

TEST_CASE("A gradient that comes from other ranks alone has the type of its parameter") {
  CHECK(problems_of("precision_of_unused_parameters") == "");
}

TEST_CASE("A wrapper that ends between forward and backward gives the parameters back") {
  CHECK(problems_of("precision_after_the_wrapper") == "");
}

TEST_CASE("What mixed precision does not go together with is refused") {
  const auto ranks = taas::test::spawn_ranks(TAAS_RANK_PROGRAM, "refused_precision", {.world_size = 2});
  CHECK(taas::test::problems(ranks) == "");
}

}  // namespace mixed_precision_test
