#include "node/launch.hpp"

#include "catch.hpp"

namespace launch_test {

using namespace taas::node;

TEST_CASE("each node of a fixed list is asked for the ranks of its own place") {
  Launch launch;
  launch.most_ranks_on_node = 8;
  launch.ranks_on_node = {8, 4};
  CHECK(most_ranks_of(launch, 0) == 8);
  CHECK(most_ranks_of(launch, 1) == 4);
  CHECK(most_ranks_of(launch, 2) == 8);
  CHECK(most_ranks_of(launch, -1) == 8);
}

TEST_CASE("where any node may take any place, each is asked for the most") {
  Launch launch;
  launch.most_ranks_on_node = 8;
  CHECK(most_ranks_of(launch, 1) == 8);
}

}  // namespace launch_test
