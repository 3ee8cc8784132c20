#include "plan/sizes/node_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>

#include "base/text.hpp"

namespace taas::plan {
namespace {

constexpr int kUnlimited = std::numeric_limits<int>::max();

/// Most ranks that a node may get, as far as anybody said.
int most_on(const NodeKind& node, const SizeRequest& request) {
  int asked = request.per_node.value_or(request.most_per_node.value_or(kUnlimited));
  return std::min(asked, node.slots > 0 ? node.slots : kUnlimited);
}

/// How many a node gets without a total; 0: nobody said.
int full(const NodeKind& node, const SizeRequest& request) {
  if (request.per_node) return *request.per_node;
  return request.most_per_node ? most_on(node, request) : node.natural;
}

/// As evenly as the nodes' bounds allow, the larger shares first.
std::vector<int> fill(int total, const std::vector<int>& bounds) {
  std::vector<std::size_t> order(bounds.size());
  std::iota(order.rbegin(), order.rend(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto one, auto other) { return bounds[one] < bounds[other]; });
  std::vector<int> counts(bounds.size());
  auto left = static_cast<int>(bounds.size());
  for (auto node : order) {
    counts[node] = std::min(bounds[node], total / left--);
    total -= counts[node];
  }
  return counts;
}

std::int64_t sum_of(const std::vector<int>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

/// Over exactly so many nodes, by their GPUs where these are known and enough.
Result<std::vector<int>> divide(const SizeRequest& request, const NodePool& pool, std::size_t nodes) {
  std::vector<int> bounds, gpus;
  for (std::size_t i = 0; i < nodes; ++i) {
    const auto& node = pool.at(i);
    bounds.push_back(most_on(node, request));
    gpus.push_back(node.gpus > 0 ? std::min(bounds.back(), node.gpus) : bounds.back());
  }
  if (sum_of(gpus) >= *request.total) return fill(*request.total, gpus);
  auto places = sum_of(bounds);
  if (places >= *request.total) return fill(*request.total, bounds);
  return usage_error(fmt::format("{} do not fit onto {} of {}: there are {}", plural(*request.total, "rank"),
                                 plural(static_cast<std::int64_t>(nodes), "node"), pool.name, plural(places, "place")));
}

/// The first nodes that hold the total.
Result<std::vector<int>> choose_nodes(const SizeRequest& request, const NodePool& pool) {
  std::int64_t places = 0;
  std::vector<int> bounds;
  while (places < *request.total) {
    if (pool.closed && bounds.size() == pool.nodes.size()) {
      return too_few_nodes(pool, fmt::format("{} need more than {}", plural(*request.total, "rank"),
                                             plural(static_cast<std::int64_t>(bounds.size()), "node")));
    }
    bounds.push_back(capacity(pool.at(bounds.size()), request));
    places += bounds.back();
  }
  return fill(*request.total, bounds);
}

/// Where GPUs decide how many ranks a node gets, none is to be left over unsaid.
Result<> check_left_over(const NodeKind& node, const SizeRequest& request) {
  if (node.gpus_left_over == 0 || request.per_node || request.most_per_node) return {};
  return usage_error(
      fmt::format("--devices-per-rank {}: the GPUs of {} are not a multiple, {} is left over: --gpus N "
                  "or --nproc-per-node N says how many to use",
                  request.devices_per_rank, node.name.empty() ? "a node" : node.name, node.gpus_left_over));
}

/// So many nodes, each with all that it holds.
Result<std::vector<int>> fill_nodes(const SizeRequest& request, const NodePool& pool, std::size_t nodes) {
  std::vector<int> counts;
  std::int64_t total = 0;
  for (std::size_t i = 0; i < nodes && total <= kMostRanks; ++i) {
    if (auto whole = check_left_over(pool.at(i), request); !whole) return whole.error();
    counts.push_back(full(pool.at(i), request));
    if (counts.back() == 0) {
      return usage_error(fmt::format(
          "{}: how many ranks? --gpus N says it for all nodes, --nproc-per-node N for each{}", pool.name, pool.hint));
    }
    total += counts.back();
  }
  return counts;
}

/// Nodes that come and go are equal, so that ranks can be placed on any of them.
Result<std::vector<int>> choose_elastic(const SizeRequest& request, const NodePool& pool) {
  int most = request.nodes->most;
  if (request.total && *request.total % most != 0) {
    return usage_error(
        fmt::format("{} is not a multiple of {}: the nodes of a range are equal", name_total(request), most));
  }
  if (request.total) return std::vector<int>(static_cast<std::size_t>(most), *request.total / most);
  auto counts = fill_nodes(request, pool, static_cast<std::size_t>(most));
  if (counts) std::fill(counts->begin(), counts->end(), *std::min_element(counts->begin(), counts->end()));
  return counts;
}

}  // namespace

Error too_few_nodes(const NodePool& pool, const std::string& wish) {
  return usage_error(
      fmt::format("{}, and {} has {}", wish, pool.name, plural(static_cast<std::int64_t>(pool.nodes.size()), "node")));
}

int capacity(const NodeKind& node, const SizeRequest& request) {
  int most = most_on(node, request);
  return most == kUnlimited ? node.usual : most;
}

Result<std::vector<int>> choose(const SizeRequest& request, const NodePool& pool, int spares) {
  if (request.total.value_or(0) > kMostRanks || (request.nodes && request.nodes->most > kMostRanks)) {
    return usage_error(fmt::format("more than {} ranks are not possible", kMostRanks));
  }
  if (!request.nodes && request.total) return choose_nodes(request, pool);
  if (!request.nodes) {
    auto all = pool.nodes.size();
    auto kept = static_cast<std::size_t>(spares);
    return fill_nodes(request, pool, kept < all ? all - kept : std::max<std::size_t>(all, 1));
  }
  auto nodes = static_cast<std::size_t>(request.nodes->most);
  if (pool.closed && nodes > pool.nodes.size()) return too_few_nodes(pool, fmt::format("--nnodes {}", nodes));
  if (request.nodes->elastic()) return choose_elastic(request, pool);
  return request.total ? divide(request, pool, nodes) : fill_nodes(request, pool, nodes);
}

}  // namespace taas::plan
