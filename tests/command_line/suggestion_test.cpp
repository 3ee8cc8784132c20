#include "parse/suggestion.hpp"

#include "catch.hpp"

namespace suggestion_test {

using taas::cli::nearest_flag;

TEST_CASE("a mistyped option has a neighbour") {
  CHECK(nearest_flag("nproc-per-nod") == "--nproc-per-node");
  CHECK(nearest_flag("nproc_per_nodes") == "--nproc-per-node");
  CHECK(nearest_flag("nproc") == "--nproc-per-node");
  CHECK(nearest_flag("gpu") == "--gpus");
  CHECK(nearest_flag("nodes") == "--nnodes");
  CHECK(nearest_flag("max-restart") == "--max-restarts");
  CHECK(nearest_flag("standalon") == "--standalone");
}

TEST_CASE("something else entirely has none") {
  CHECK(nearest_flag("learning-rate").empty());
  CHECK(nearest_flag("").empty());
  CHECK(nearest_flag("z").empty());
  CHECK(nearest_flag(std::string(100000, 'x')).empty());
}

}  // namespace suggestion_test
