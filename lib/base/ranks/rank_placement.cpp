#include "base/ranks/rank_placement.hpp"

#include <numeric>

namespace taas {

std::vector<NodeShare> share_ranks(const std::vector<int>& ranks_on_node) {
  std::vector<NodeShare> shares;
  Rank next{0};
  for (int ranks : ranks_on_node) {
    shares.push_back({NodeIndex{static_cast<int>(shares.size())}, next, ranks});
    next.value += ranks;
  }
  return shares;
}

std::vector<NodeShare> share_ranks(const std::vector<NodeIndex>& node_of_rank) {
  std::vector<int> ranks_on_node;
  for (NodeIndex node : node_of_rank) {
    auto index = static_cast<std::size_t>(node.value);
    if (index >= ranks_on_node.size()) ranks_on_node.resize(index + 1);
    ++ranks_on_node[index];
  }
  return share_ranks(ranks_on_node);
}

int world_size_of(const std::vector<NodeShare>& shares) {
  return std::accumulate(shares.begin(), shares.end(), 0,
                         [](int sum, const NodeShare& share) { return sum + share.local_world_size; });
}

std::vector<NodeIndex> node_of_rank(const std::vector<NodeShare>& shares) {
  std::vector<NodeIndex> nodes;
  for (const auto& share : shares) {
    nodes.insert(nodes.end(), static_cast<std::size_t>(share.local_world_size), share.node);
  }
  return nodes;
}

std::vector<RankPlace> place_ranks(const std::vector<NodeShare>& shares, int world_size, int nodes) {
  std::vector<RankPlace> places;
  for (const auto& share : shares) {
    for (int local = 0; local < share.local_world_size; ++local) {
      Rank rank{share.first_rank.value + local};
      places.push_back({rank, world_size, local, share.local_world_size, share.node, nodes});
    }
  }
  return places;
}

std::vector<RankPlace> place_ranks(const std::vector<NodeShare>& world) {
  return place_ranks(world, world_size_of(world), static_cast<int>(world.size()));
}

}  // namespace taas
