#include "plan/sizes/node_counts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <numeric>
#include <utility>

#include "base/text.hpp"
#include "plan/sizes/node_choice.hpp"
#include "plan/sizes/node_pool.hpp"
#include "plan/sizes/size_request.hpp"
#include "plan/sizes/sizes.hpp"

namespace taas::plan {
namespace {

constexpr std::size_t kMostNamesSpelledOut = 8;

int sum(const std::vector<int>& counts) { return std::accumulate(counts.begin(), counts.end(), 0); }

Result<> check_slots(const NodePool& pool, const std::vector<int>& counts) {
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const auto& node = pool.at(i);
    if (node.slots == 0 || counts[i] <= node.slots) continue;
    return usage_error(fmt::format("{} has {}, and {} are asked for", node.name, plural(node.slots, "slot"),
                                   plural(counts[i], "rank")));
  }
  return {};
}

std::string names_from(const NodePool& pool, std::size_t first) {
  std::vector<std::string> names;
  for (auto i = first; i < pool.nodes.size(); ++i) names.push_back(pool.nodes[i].name);
  bool all = names.size() <= kMostNamesSpelledOut;
  if (!all) names.resize(kMostNamesSpelledOut);
  return fmt::format("{}{}", fmt::join(names, ", "), all ? "" : ", …");
}

std::string name_group(const SizeRequest& request) {
  int each = request.devices_per_rank;
  return each == 1 ? "of its GPUs" : fmt::format("{} of its GPUs", each);
}

/// "2 nodes of n0:29500, each with a rank for each of its GPUs (4 here)".
void tell_own_counts(const NodePool& pool, const SizeRequest& request, NodeCounts& counts) {
  auto nodes = plural(static_cast<std::int64_t>(counts.ranks_on_node.size()), "node");
  counts.notices.push_back(fmt::format("{} of {}, each with a rank for each {} ({} here)", nodes, pool.name,
                                       request.on_cpu ? "of its cores" : name_group(request),
                                       counts.ranks_on_node.front()));
}

void add_notices(const NodePool& pool, const SizeRequest& request, NodeCounts& counts) {
  auto nodes = counts.ranks_on_node.size();
  auto least = counts.min_nodes < static_cast<int>(nodes) ? fmt::format("{} to ", counts.min_nodes) : std::string();
  counts.notices.push_back(
      fmt::format("{} on {}{} of {}{}{}", plural(sum(counts.ranks_on_node), "rank"), least,
                  plural(static_cast<std::int64_t>(nodes), "node"), pool.name,
                  describe_spread(counts.ranks_on_node, capacity(pool.at(0), request)),
                  counts.spares == 0 ? std::string() : fmt::format(", and {}", plural(counts.spares, "spare"))));
  auto asked = static_cast<std::size_t>(counts.expected_agents);
  if (pool.nodes.size() > asked) {
    counts.notices.push_back(
        fmt::format("not needed: {} (--nnodes spreads ranks over more nodes, --spares keeps some "
                    "ready)",
                    names_from(pool, asked)));
  }
}

/// The shell of salloc is not on a node, and SLURM tells it of --gpus-per-node only.
void tell_unknown_gpus(const LaunchMode& mode, const NodePool& pool, const SizeRequest& request, NodeCounts& counts) {
  const auto* allocation = std::get_if<SlurmAllocation>(&mode);
  if (!allocation || !request.empty() || allocation->job.gpus_on_node > 0 || !allocation->job.this_node.empty()) return;
  if (pool.resources.gpus.value_or(0) > 0) return;
  counts.notices.push_back(
      fmt::format("job {} does not say here how many GPUs its nodes have: one rank on each; salloc --gpus-per-node N "
                  "(not --gres) tells it, --nproc-per-node N and --gpus N do as well",
                  allocation->job.id));
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

Result<NodeCounts> decide_node_counts(const Options& options, const LaunchMode& mode, const Machine& machine) {
  if (std::holds_alternative<OneMachine>(mode)) return count_simulated(options, machine);
  auto pool = describe_pool(options, mode, machine);
  auto request = read_size_request(options.size, pool.resources);
  if (!request) return request.error();
  int spares = options.nodes.spares;
  auto ranks = choose(*request, pool, spares);
  if (!ranks) return ranks.error();
  if (auto fits = check_slots(pool, *ranks); !fits) return fits.error();
  if (std::accumulate(ranks->begin(), ranks->end(), std::int64_t{0}) > kMostRanks) {
    return usage_error(fmt::format("more than {} ranks are not possible", kMostRanks));
  }
  auto nodes = static_cast<int>(ranks->size());
  auto left = static_cast<std::int64_t>(pool.nodes.size()) - nodes;
  if (spares > kMostRanks || (pool.closed && spares > left)) {
    return too_few_nodes(pool, fmt::format("--spares {} beside {}", spares, plural(nodes, "node")));
  }
  NodeCounts counts{
      request->on_cpu ? Device::kCpu : Device::kGpu, std::move(*ranks), nodes, spares, nodes + spares, {}};
  if (request->nodes && request->nodes->elastic()) counts.min_nodes = request->nodes->least;
  bool own = std::holds_alternative<Join>(mode) && counts_by_machine(options.size);
  own ? tell_own_counts(pool, *request, counts) : add_notices(pool, *request, counts);
  tell_unknown_gpus(mode, pool, *request, counts);
  return counts;
}

}  // namespace taas::plan
