#include "plan/sizes/sizes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "base/text.hpp"
#include "plan/options/numbers.hpp"
#include "plan/sizes/size_request.hpp"

namespace taas::plan {
namespace {

constexpr std::size_t kMostNodesSpelledOut = 8;
// What two machines of eight GPUs are tried with on a laptop or in continuous integration needs no consent.
constexpr int kRanksWithoutConsent = 2 * kDefaultGpusPerNode;
constexpr int kRanksPerCoreWithoutConsent = 8;
constexpr const char* kMoreMachines = "--hosts or SLURM add machines";

/// What one machine cannot do.
Result<> check_one_machine(const SizeRequest& request, const SizeOptions& options) {
  if (!request.total && !request.nodes && !request.per_node && request.most_per_node) {
    return usage_error(fmt::format("--gpus-per-node {} says nothing by itself: add --gpus N", *request.most_per_node));
  }
  if (request.nodes && request.nodes->elastic()) {
    return usage_error(
        fmt::format("--nnodes {}: a range is for nodes that are other machines: name them with --hosts, or where they "
                    "meet with --rdzv-endpoint, or use SLURM; else say one number",
                    *options.nnodes));
  }
  return {};
}

int ceiling(int total, int part) { return total / part + (total % part == 0 ? 0 : 1); }

/// How many nodes a total needs when nothing else was said. A machine with more than eight GPUs is still one node.
int count_nodes(const SizeRequest& request, const SizeOptions& options, const Machine& machine) {
  if (request.nodes) return request.nodes->most;
  if (request.per_node) return *request.total / *request.per_node;
  return ceiling(*request.total, request.most_per_node.value_or(usual_ranks(machine.gpus, options)));
}

std::int64_t gpus_for(std::int64_t ranks, int devices_per_rank) { return ranks * devices_per_rank; }

/// A total of ranks that share GPUs: each is a node of its own, for the program as it is for NCCL
/// (rank_environment.cpp).
bool nodes_of_one(const SizeRequest& request, const Machine& machine) {
  bool only_total = request.total && !request.nodes && !request.per_node && !request.most_per_node;
  return only_total && !request.on_cpu && machine.gpus > 0 &&
         (gpus_for(*request.total, request.devices_per_rank) > machine.gpus || has_slices(machine));
}

Result<std::vector<int>> place(const SizeRequest& request, const SizeOptions& options, const Machine& machine) {
  if (request.empty()) {
    auto whole = check_groups(machine.gpus, "this machine", options);
    return whole ? Result<std::vector<int>>(std::vector<int>{ranks_for(machine.gpus, options)}) : whole.error();
  }
  std::int64_t nodes = request.nodes ? request.nodes->most : 1;
  std::int64_t total = request.total ? std::int64_t{*request.total}
                                     : nodes * request.per_node.value_or(request.most_per_node.value_or(1));
  if (total > kMostRanks) {
    return usage_error(fmt::format("{} ranks are too many for one machine: at most {}", total, kMostRanks));
  }
  if (request.total) nodes = nodes_of_one(request, machine) ? total : count_nodes(request, options, machine);
  return spread_ranks(static_cast<int>(total), static_cast<int>(nodes));
}

std::string name_view(int devices_per_rank) {
  if (devices_per_rank == 1) return "one GPU, as device 0";
  return fmt::format("{} GPUs, as devices 0 to {}", devices_per_rank, devices_per_rank - 1);
}

/// Whoever counts processes, or wants cores, has seen to it.
bool leaves_accelerators_out(const SizeRequest& request, const SizeOptions& options, const Machine& machine) {
  bool by_number = !request.total && options.nproc_per_node && parse_integer(*options.nproc_per_node);
  return !machine.other_accelerators.empty() && !by_number && options.nproc_per_node != "cpu";
}

void add_notices(const SizeRequest& request, const SizeOptions& options, const Machine& machine, Sizes& sizes) {
  int total = std::accumulate(sizes.ranks_on_node.begin(), sizes.ranks_on_node.end(), 0);
  auto nodes = static_cast<int>(sizes.ranks_on_node.size());
  int full = request.per_node.value_or(request.most_per_node.value_or(kDefaultGpusPerNode));
  auto where = nodes == 1 ? std::string()
                          : fmt::format(" on {} simulated nodes{}", nodes, describe_spread(sizes.ranks_on_node, full));
  int each = request.devices_per_rank;
  if (sizes.device == Device::kGpu && gpus_for(total, each) > machine.gpus) {
    sizes.notices.push_back(fmt::format("{} share {}, which is for trying, not for speed: each sees {}",
                                        plural(total, "rank"), plural(machine.gpus, "GPU"), name_view(each)));
  } else if (sizes.device == Device::kGpu && total > 1 && has_slices(machine)) {
    sizes.notices.push_back(fmt::format("{} here: {}, each with one of them, as device 0",
                                        plural(machine.gpus, "MIG slice"), plural(total, "rank")));
  } else if (sizes.device == Device::kGpu && (nodes > 1 || (request.empty() && total > 1))) {
    sizes.notices.push_back(fmt::format("{} here: {}, {}{}", plural(machine.gpus, "GPU"), plural(total, "rank"),
                                        each == 1 ? "one on each GPU" : fmt::format("each on {} GPUs", each), where));
  } else if (sizes.device == Device::kCpu && leaves_accelerators_out(request, options, machine)) {
    sizes.notices.push_back(
        fmt::format("{} here, which are accelerators that taas-run does not count: {}{}, each of which may choose one "
                    "by LOCAL_RANK; --nproc-per-node N says how many there are to be",
                    machine.other_accelerators, plural(total, "rank"), where));
  } else if (sizes.device == Device::kCpu && (nodes > 1 || request.total)) {
    sizes.notices.push_back(fmt::format("{}{} with gloo{}{}{}", machine.gpus == 0 ? "no GPU here: " : "",
                                        plural(total, "CPU rank"),
                                        each == 1 ? "" : fmt::format(", each in place of one with {} GPUs", each),
                                        where, machine.submits_jobs ? "; --slurm submits them as a job" : ""));
  }
}

Result<> check_gpus(const Sizes& sizes, const SizeOptions& options, const Machine& machine) {
  int total = std::accumulate(sizes.ranks_on_node.begin(), sizes.ranks_on_node.end(), 0);
  auto needed = gpus_for(total, options.devices_per_rank);
  if (sizes.device == Device::kGpu && options.devices_per_rank > 1 && has_slices(machine)) {
    return usage_error(
        fmt::format("--devices-per-rank {}: CUDA shows a process one MIG slice", options.devices_per_rank));
  }
  if (sizes.device == Device::kCpu || needed <= machine.gpus) return {};
  if (options.oversubscribe) return check_group_fits(machine.gpus, options);
  if (machine.sliced_gpus > 0) {
    return usage_error(
        fmt::format("{} need {}, and CUDA shows {} here: {} are cut into MIG slices, and "
                    "CUDA_VISIBLE_DEVICES=MIG-…,MIG-… with the names that nvidia-smi -L shows gives each rank one",
                    plural(total, "rank"), plural(needed, "GPU"), machine.gpus, plural(machine.sliced_gpus, "GPU")));
  }
  return usage_error(fmt::format("{} need {}, and this machine has {}: {}, --oversubscribe lets ranks share GPUs",
                                 plural(total, "rank"), plural(needed, "GPU"), machine.gpus, kMoreMachines));
}

/// Ranks that were counted as GPUs and would all be on the CPU. Those that --nproc-per-node counts are processes, and
/// start as under torchrun.
Result<> check_cores(const SizeRequest& request, const Sizes& sizes, const SizeOptions& options,
                     const Machine& machine) {
  int total = std::accumulate(sizes.ranks_on_node.begin(), sizes.ranks_on_node.end(), 0);
  bool counts_gpus = request.total || request.most_per_node;
  bool asked = options.oversubscribe || sizes.device == Device::kGpu || !counts_gpus;
  auto few = std::max(std::int64_t{kRanksWithoutConsent}, std::int64_t{kRanksPerCoreWithoutConsent} * machine.cores);
  if (asked || total <= few) return {};
  return usage_error(fmt::format("{}{} on {} are more than {} for each core: {}, --oversubscribe runs them here",
                                 machine.gpus == 0 ? "no GPU here: " : "", plural(total, "CPU rank"),
                                 plural(machine.cores, "core"), kRanksPerCoreWithoutConsent,
                                 machine.submits_jobs ? "--slurm submits them as a job" : kMoreMachines));
}

}  // namespace

std::vector<int> spread_ranks(int total, int nodes) {
  std::vector<int> counts(static_cast<std::size_t>(nodes), total / nodes);
  std::for_each_n(counts.begin(), total % nodes, [](int& count) { ++count; });
  return counts;
}

std::string describe_spread(const std::vector<int>& counts, int full) {
  auto [least, most] = std::minmax_element(counts.begin(), counts.end());
  if (*least == *most && *most == full) return {};
  auto sizes = counts.size() <= kMostNodesSpelledOut ? fmt::format("{}", fmt::join(counts, " + "))
                                                     : fmt::format("{} to {} each", *least, *most);
  return fmt::format(" ({}{})", sizes, *least == *most ? "" : ": LOCAL_WORLD_SIZE differs");
}

Result<Sizes> decide_sizes(const SizeOptions& options, const Machine& machine) {
  auto request = read_size_request(options, {machine.gpus, machine.cores, false, machine.gpu_problem});
  if (!request) return request.error();
  if (auto possible = check_one_machine(*request, options); !possible) return possible.error();
  if (!machine.gpu_problem.empty() && options.nproc_per_node != "cpu") return gpus_have_vanished(machine.gpu_problem);
  auto counts = place(*request, options, machine);
  if (!counts) return counts.error();
  Sizes sizes{machine.gpus > 0 && !request->on_cpu ? Device::kGpu : Device::kCpu, std::move(*counts), {}};
  if (auto enough = check_gpus(sizes, options, machine); !enough) return enough.error();
  if (auto enough = check_cores(*request, sizes, options, machine); !enough) return enough.error();
  add_notices(*request, options, machine, sizes);
  return sizes;
}

}  // namespace taas::plan
