#include "plan/node_counts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>

#include "plan/node_house.hpp"
#include "plan/size_request.hpp"
#include "plan/sizes.hpp"

namespace taas::plan {
namespace {

constexpr std::size_t kMostNamesSpelledOut = 8;
constexpr int kUnlimited = std::numeric_limits<int>::max();

std::string plural(std::int64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

int sum(const std::vector<int>& counts) { return std::accumulate(counts.begin(), counts.end(), 0); }

/// Most ranks that a node may get, as far as anybody said.
int most_on(const NodeKind& node, const SizeRequest& request) {
  int asked = request.per_node.value_or(request.most_per_node.value_or(kUnlimited));
  return std::min(asked, node.slots > 0 ? node.slots : kUnlimited);
}

/// How many a node gets when a total is divided.
int capacity(const NodeKind& node, const SizeRequest& request) {
  int most = most_on(node, request);
  return most == kUnlimited ? node.usual : most;
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

Error too_few_nodes(const NodeHouse& house, const std::string& wish) {
  return usage_error(fmt::format("{}, and {} has {}", wish, house.name, plural(house.nodes.size(), "node")));
}

Result<> check_slots(const NodeHouse& house, const std::vector<int>& counts) {
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const auto& node = house.at(i);
    if (node.slots == 0 || counts[i] <= node.slots) continue;
    return usage_error(fmt::format("{} has {}, and {} are asked for", node.name, plural(node.slots, "slot"),
                                   plural(counts[i], "rank")));
  }
  return {};
}

Result<std::vector<int>> divide(const SizeRequest& request, const NodeHouse& house, std::size_t nodes) {
  std::vector<int> bounds;
  std::int64_t places = 0;
  for (std::size_t i = 0; i < nodes; ++i) {
    bounds.push_back(most_on(house.at(i), request));
    places += bounds.back();
  }
  if (places >= *request.total) return fill(*request.total, bounds);
  return usage_error(fmt::format("{} do not fit onto {} of {}: there are {}", plural(*request.total, "rank"),
                                 plural(static_cast<std::int64_t>(nodes), "node"), house.name,
                                 plural(places, "place")));
}

/// The first nodes that hold the total.
Result<std::vector<int>> choose_nodes(const SizeRequest& request, const NodeHouse& house) {
  std::int64_t places = 0;
  std::vector<int> bounds;
  while (places < *request.total) {
    if (house.closed && bounds.size() == house.nodes.size()) {
      return too_few_nodes(house, fmt::format("{} need more than {}", plural(*request.total, "rank"),
                                              plural(static_cast<std::int64_t>(bounds.size()), "node")));
    }
    bounds.push_back(capacity(house.at(bounds.size()), request));
    places += bounds.back();
  }
  return fill(*request.total, bounds);
}

/// So many nodes, each with all that it holds.
Result<std::vector<int>> fill_nodes(const SizeRequest& request, const NodeHouse& house, std::size_t nodes) {
  std::vector<int> counts;
  std::int64_t total = 0;
  for (std::size_t i = 0; i < nodes && total <= kMostRanks; ++i) {
    counts.push_back(full(house.at(i), request));
    if (counts.back() == 0) {
      return usage_error(fmt::format(
          "{}: how many ranks? --gpus N says it for all nodes, --nproc-per-node N for each{}", house.name, house.hint));
    }
    total += counts.back();
  }
  return counts;
}

/// Nodes that come and go are equal, so that ranks can be placed on any of them.
Result<std::vector<int>> choose_elastic(const SizeRequest& request, const NodeHouse& house) {
  int most = request.nodes->most;
  if (request.total && *request.total % most != 0) {
    return usage_error(
        fmt::format("--gpus {} is no multiple of {}: the nodes of a range are equal", *request.total, most));
  }
  if (request.total) return std::vector<int>(static_cast<std::size_t>(most), *request.total / most);
  auto counts = fill_nodes(request, house, static_cast<std::size_t>(most));
  if (counts) std::fill(counts->begin(), counts->end(), *std::min_element(counts->begin(), counts->end()));
  return counts;
}

Result<std::vector<int>> choose(const SizeRequest& request, const NodeHouse& house, int spares) {
  if (request.total.value_or(0) > kMostRanks || (request.nodes && request.nodes->most > kMostRanks)) {
    return usage_error(fmt::format("more than {} ranks are not possible", kMostRanks));
  }
  if (!request.nodes && request.total) return choose_nodes(request, house);
  if (!request.nodes) {
    auto all = house.nodes.size();
    auto kept = static_cast<std::size_t>(spares);
    return fill_nodes(request, house, kept < all ? all - kept : std::max<std::size_t>(all, 1));
  }
  auto nodes = static_cast<std::size_t>(request.nodes->most);
  if (house.closed && nodes > house.nodes.size()) return too_few_nodes(house, fmt::format("--nnodes {}", nodes));
  if (request.nodes->elastic()) return choose_elastic(request, house);
  return request.total ? divide(request, house, nodes) : fill_nodes(request, house, nodes);
}

std::string names_from(const NodeHouse& house, std::size_t first) {
  std::vector<std::string> names;
  for (auto i = first; i < house.nodes.size(); ++i) names.push_back(house.nodes[i].name);
  bool all = names.size() <= kMostNamesSpelledOut;
  if (!all) names.resize(kMostNamesSpelledOut);
  return fmt::format("{}{}", fmt::join(names, ", "), all ? "" : ", …");
}

void add_notices(const NodeHouse& house, const SizeRequest& request, NodeCounts& counts) {
  auto nodes = counts.ranks_on_node.size();
  auto least = counts.min_nodes < static_cast<int>(nodes) ? fmt::format("{} to ", counts.min_nodes) : std::string();
  counts.notices.push_back(
      fmt::format("{} on {}{} of {}{}{}", plural(sum(counts.ranks_on_node), "rank"), least,
                  plural(static_cast<std::int64_t>(nodes), "node"), house.name,
                  describe_spread(counts.ranks_on_node, capacity(house.at(0), request)),
                  counts.spares == 0 ? std::string() : fmt::format(", and {}", plural(counts.spares, "spare"))));
  auto asked = static_cast<std::size_t>(counts.expected_agents);
  if (house.nodes.size() > asked) {
    counts.notices.push_back(
        fmt::format("not needed: {} (--nnodes spreads ranks over more nodes, --spares keeps some "
                    "ready)",
                    names_from(house, asked)));
  }
}

Result<NodeCounts> count_simulated(const Options& options, const Machine& machine) {
  if (options.nodes.spares > 0) {
    return usage_error(
        fmt::format("--spares {}: this machine is the only one (--hosts, SLURM and --rdzv-endpoint add "
                    "others)",
                    options.nodes.spares));
  }
  auto sizes = decide_sizes(options.size, machine);
  if (!sizes) return sizes.error();
  auto nodes = static_cast<int>(sizes->ranks_on_node.size());
  return NodeCounts{sizes->device, std::move(sizes->ranks_on_node), nodes, 0, 1, std::move(sizes->notices)};
}

}  // namespace

Result<NodeCounts> decide_node_counts(const Options& options, const Way& way, const Machine& machine) {
  if (std::holds_alternative<OneMachine>(way)) return count_simulated(options, machine);
  auto house = describe_house(options, way, machine);
  auto request = read_size_request(options.size, house.resources);
  if (!request) return request.error();
  int spares = options.nodes.spares;
  auto ranks = choose(*request, house, spares);
  if (!ranks) return ranks.error();
  if (auto fits = check_slots(house, *ranks); !fits) return fits.error();
  if (std::accumulate(ranks->begin(), ranks->end(), std::int64_t{0}) > kMostRanks) {
    return usage_error(fmt::format("more than {} ranks are not possible", kMostRanks));
  }
  auto nodes = static_cast<int>(ranks->size());
  auto left = static_cast<std::int64_t>(house.nodes.size()) - nodes;
  if (spares > kMostRanks || (house.closed && spares > left)) {
    return too_few_nodes(house, fmt::format("--spares {} beside {}", spares, plural(nodes, "node")));
  }
  NodeCounts counts{
      request->on_cpu ? Device::kCpu : Device::kGpu, std::move(*ranks), nodes, spares, nodes + spares, {}};
  if (request->nodes && request->nodes->elastic()) counts.min_nodes = request->nodes->least;
  add_notices(house, *request, counts);
  return counts;
}

}  // namespace taas::plan
