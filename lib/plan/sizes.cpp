#include "plan/sizes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

#include "plan/numbers.hpp"

namespace taas::plan {
namespace {

constexpr int kDefaultGpusPerNode = 8;
constexpr int kMostRanks = 65536;
constexpr std::size_t kMostNodesSpelledOut = 8;

/// The size options as numbers; absent where the user said nothing.
struct Request {
  std::optional<int> total;
  std::optional<int> most_per_node;
  std::optional<int> nodes;
  std::optional<int> per_node;
  bool on_cpu = false;

  [[nodiscard]] bool empty() const { return !total && !most_per_node && !nodes && !per_node; }
};

/// How many processes "auto", "gpu", "cpu" or a number mean on this machine.
Result<> read_processes(const std::string& text, const Machine& machine, Request& request) {
  if (auto valid = check_process_count(text); !valid) return valid.error();
  if (text == "gpu" && machine.gpus == 0) return usage_error("no GPU is visible here; say cpu or a number");
  if (text == "gpu" || (text == "auto" && machine.gpus > 0)) {
    request.per_node = machine.gpus;
  } else if (text == "cpu" || text == "auto") {
    request.per_node = machine.cores;
    request.on_cpu = true;
  } else {
    request.per_node = parse_integer(text);
  }
  return {};
}

/// Least and most of "N" or "MIN:MAX".
std::optional<std::pair<int, int>> read_range(std::string_view text) {
  auto parts = split(text, ':');
  auto least = parse_integer(parts.front());
  auto most = parse_integer(parts.back());
  if (parts.size() > 2 || !least || !most || *least < 1 || *most < *least) return std::nullopt;
  return std::pair(*least, *most);
}

Result<Request> read_request(const SizeOptions& options, const Machine& machine) {
  Request request;
  request.total = options.gpus;
  request.most_per_node = options.gpus_per_node;
  if (request.total.value_or(1) < 1) {
    return usage_error(fmt::format("--gpus {}: at least 1 is needed", *request.total));
  }
  if (request.most_per_node.value_or(1) < 1) {
    return usage_error(fmt::format("--gpus-per-node {}: at least 1 is needed", *request.most_per_node));
  }
  if (options.nnodes) {
    auto valid = check_node_count(*options.nnodes);
    if (!valid) return std::move(valid).error().with(fmt::format("--nnodes {}", *options.nnodes));
    request.nodes = read_range(*options.nnodes)->first;
  }
  if (options.nproc_per_node) {
    auto read = read_processes(*options.nproc_per_node, machine, request);
    if (!read) return std::move(read).error().with(fmt::format("--nproc-per-node {}", *options.nproc_per_node));
  }
  return request;
}

Result<> check_agreement(const Request& request) {
  if (request.per_node && request.most_per_node && *request.per_node != *request.most_per_node) {
    return usage_error(fmt::format("--nproc-per-node {} and --gpus-per-node {} disagree: give one of them",
                                   *request.per_node, *request.most_per_node));
  }
  if (!request.total && !request.nodes && !request.per_node && request.most_per_node) {
    return usage_error(fmt::format("--gpus-per-node {} says nothing by itself: add --gpus N", *request.most_per_node));
  }
  if (!request.total) return {};
  std::int64_t total = *request.total;
  if (request.per_node && total % *request.per_node != 0) {
    return usage_error(fmt::format("--gpus {} and --nproc-per-node {} disagree: {} is no multiple of {}", total,
                                   *request.per_node, total, *request.per_node));
  }
  if (request.per_node && request.nodes && total != std::int64_t{*request.nodes} * *request.per_node) {
    return usage_error(fmt::format("--gpus {} disagrees with --nnodes {} times --nproc-per-node {}", total,
                                   *request.nodes, *request.per_node));
  }
  if (request.nodes && total < *request.nodes) {
    return usage_error(
        fmt::format("--gpus {} is less than --nnodes {}: a node would get nothing", total, *request.nodes));
  }
  if (request.nodes && request.most_per_node && total > std::int64_t{*request.nodes} * *request.most_per_node) {
    return usage_error(fmt::format("--gpus {} is more than --nnodes {} times --gpus-per-node {}", total, *request.nodes,
                                   *request.most_per_node));
  }
  return {};
}

int ceiling(int total, int part) { return total / part + (total % part == 0 ? 0 : 1); }

/// How many nodes a total needs when nothing else was said. A machine with more than eight GPUs is still one node.
int count_nodes(const Request& request, const Machine& machine) {
  if (request.nodes) return *request.nodes;
  if (request.per_node) return *request.total / *request.per_node;
  return ceiling(*request.total, request.most_per_node.value_or(std::max(kDefaultGpusPerNode, machine.gpus)));
}

/// As evenly as it goes, the larger nodes first: 9 on 2 is 5 + 4.
std::vector<int> spread(int total, int nodes) {
  std::vector<int> counts(static_cast<std::size_t>(nodes), total / nodes);
  std::for_each_n(counts.begin(), total % nodes, [](int& count) { ++count; });
  return counts;
}

Result<std::vector<int>> place(const Request& request, const Machine& machine) {
  if (request.empty()) return std::vector<int>{std::max(1, machine.gpus)};
  std::int64_t nodes = request.nodes.value_or(1);
  std::int64_t total = request.total ? std::int64_t{*request.total}
                                     : nodes * request.per_node.value_or(request.most_per_node.value_or(1));
  if (total > kMostRanks) {
    return usage_error(fmt::format("{} ranks are too many for one machine: at most {}", total, kMostRanks));
  }
  if (request.total) nodes = count_nodes(request, machine);
  return spread(static_cast<int>(total), static_cast<int>(nodes));
}

/// "6 + 6" where it is worth saying: uneven, or nodes that could hold more.
std::string describe_spread(const std::vector<int>& counts, int full) {
  int most = counts.front(), least = counts.back();
  if (least == most && most == full) return {};
  auto sizes = counts.size() <= kMostNodesSpelledOut ? fmt::format("{}", fmt::join(counts, " + "))
                                                     : fmt::format("{} to {} each", least, most);
  return fmt::format(" ({}{})", sizes, least == most ? "" : ": LOCAL_WORLD_SIZE differs");
}

std::string plural(int count, const char* what) { return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s"); }

void add_notices(const Request& request, const Machine& machine, Sizes& sizes) {
  int total = std::accumulate(sizes.ranks_on_node.begin(), sizes.ranks_on_node.end(), 0);
  auto nodes = static_cast<int>(sizes.ranks_on_node.size());
  int full = request.per_node.value_or(request.most_per_node.value_or(kDefaultGpusPerNode));
  auto where = nodes == 1 ? std::string()
                          : fmt::format(" on {} simulated nodes{}", nodes, describe_spread(sizes.ranks_on_node, full));
  if (sizes.device == Device::kGpu && total > machine.gpus) {
    sizes.notices.push_back(fmt::format("{} share {}{}: NCCL needs one for each rank, so the program has to use gloo",
                                        plural(total, "rank"), plural(machine.gpus, "GPU"), where));
  } else if (sizes.device == Device::kGpu && (nodes > 1 || (request.empty() && total > 1))) {
    sizes.notices.push_back(
        fmt::format("{} here: {}, one on each GPU{}", plural(machine.gpus, "GPU"), plural(total, "rank"), where));
  } else if (sizes.device == Device::kCpu && (nodes > 1 || request.total)) {
    sizes.notices.push_back(
        fmt::format("{}{} with gloo{}", machine.gpus == 0 ? "no GPU here: " : "", plural(total, "CPU rank"), where));
  }
}

Result<> check_gpus(const Sizes& sizes, const SizeOptions& options, const Machine& machine) {
  int total = std::accumulate(sizes.ranks_on_node.begin(), sizes.ranks_on_node.end(), 0);
  if (sizes.device == Device::kCpu || total <= machine.gpus || options.oversubscribe) return {};
  return usage_error(
      fmt::format("{} need {}, and this machine has {}: --oversubscribe lets ranks share them (more "
                  "machines, by --hosts or SLURM, come with a later version of taas-run)",
                  plural(total, "rank"), plural(total, "GPU"), machine.gpus));
}

}  // namespace

Result<> check_node_count(std::string_view text) {
  auto range = read_range(text);
  if (!range) return usage_error("not a number of nodes, such as 2");
  if (range->first == range->second) return {};
  return usage_error("a range of nodes comes with a later version of taas-run; say one number");
}

Result<> check_process_count(std::string_view text) {
  if (text == "auto" || text == "gpu" || text == "cpu" || parse_integer(text).value_or(0) > 0) return {};
  return usage_error("not a number of processes, auto, gpu or cpu");
}

Result<Sizes> decide_sizes(const SizeOptions& options, const Machine& machine) {
  auto request = read_request(options, machine);
  if (!request) return request.error();
  if (auto agreed = check_agreement(*request); !agreed) return agreed.error();
  auto counts = place(*request, machine);
  if (!counts) return counts.error();
  Sizes sizes{machine.gpus > 0 && !request->on_cpu ? Device::kGpu : Device::kCpu, std::move(*counts), {}};
  if (auto enough = check_gpus(sizes, options, machine); !enough) return enough.error();
  add_notices(*request, machine, sizes);
  return sizes;
}

}  // namespace taas::plan
