#include "base/ranks/rank_placement.hpp"

#include "catch.hpp"

namespace rank_placement_test {

using namespace taas;

TEST_CASE("ranks are numbered node by node, whatever each node has") {
  auto shares = share_ranks(std::vector<int>{2, 0, 3});
  REQUIRE(shares.size() == 3);
  CHECK(shares[0].first_rank == Rank{0});
  CHECK(shares[1].local_world_size == 0);
  CHECK(shares[2].first_rank == Rank{2});
  CHECK(shares[2].node == NodeIndex{2});
  CHECK(world_size_of(shares) == 5);
}

TEST_CASE("each rank of a world has its place") {
  auto places = place_ranks(share_ranks(std::vector<int>{2, 3}));
  REQUIRE(places.size() == 5);
  const auto& last = places.back();
  CHECK(last.rank == Rank{4});
  CHECK(last.local_rank == 2);
  CHECK(last.local_world_size == 3);
  CHECK(last.node == NodeIndex{1});
  CHECK(last.world_size == 5);
  CHECK(last.nodes == 2);
}

TEST_CASE("a node places its own share of a larger world") {
  auto places = place_ranks({{NodeIndex{3}, Rank{6}, 2}}, 10, 5);
  REQUIRE(places.size() == 2);
  CHECK(places[1].rank == Rank{7});
  CHECK(places[1].local_rank == 1);
  CHECK(places[1].world_size == 10);
  CHECK(places[1].nodes == 5);
}

TEST_CASE("the nodes of ranks and the shares of nodes tell the same") {
  auto nodes = node_of_rank(share_ranks(std::vector<int>{1, 2}));
  CHECK(nodes == std::vector{NodeIndex{0}, NodeIndex{1}, NodeIndex{1}});
  auto shares = share_ranks(nodes);
  REQUIRE(shares.size() == 2);
  CHECK(shares[1].first_rank == Rank{1});
  CHECK(shares[1].local_world_size == 2);
  CHECK(share_ranks(std::vector<NodeIndex>{}).empty());
}

}  // namespace rank_placement_test
