#pragma once

#include <vector>

#include "base/ids.hpp"

namespace taas {

/// One node's share of a world: ranks that follow each other.
struct NodeShare {
  NodeIndex node;
  Rank first_rank;
  int local_world_size = 0;
};

/// Where one rank of one generation stands. All that its node has to know of the others.
struct RankPlace {
  Rank rank = {};
  int world_size = 1;
  int local_rank = 0;
  int local_world_size = 1;
  NodeIndex node = {};
  int nodes = 1;
};

/// Ranks are numbered node by node: the share of each node, in the order of the nodes.
std::vector<NodeShare> share_ranks(const std::vector<int>& ranks_on_node);
/// The same where the node of each rank is known.
std::vector<NodeShare> share_ranks(const std::vector<NodeIndex>& node_of_rank);

int world_size_of(const std::vector<NodeShare>& shares);
/// By rank.
std::vector<NodeIndex> node_of_rank(const std::vector<NodeShare>& shares);

/// The places of the ranks in these shares of a world, in their order.
std::vector<RankPlace> place_ranks(const std::vector<NodeShare>& shares, int world_size, int nodes);
/// The same where the shares are the whole world.
std::vector<RankPlace> place_ranks(const std::vector<NodeShare>& world);

}  // namespace taas
