#include "plan/sizes/size_request.hpp"

#include <fmt/format.h>

#include <cstdint>

#include "base/text.hpp"
#include "plan/options/numbers.hpp"

namespace taas::plan {
namespace {

Error unknown_here(std::string_view what) {
  return usage_error(fmt::format("the {} of other machines are not known here; say a number", what));
}

/// How many processes "auto", "gpu", "cpu" or a number mean on a node.
Result<> read_processes(const std::string& text, const NodeResources& node, SizeRequest& request) {
  if (auto valid = check_process_count(text); !valid) return valid.error();
  if (auto number = parse_integer(text)) {
    request.per_node = number;
    return {};
  }
  if (text != "cpu" && node.gpus_by_node) return {};
  if (text != "cpu" && !node.gpus) return unknown_here("GPUs");
  if (text == "gpu" && node.gpus == 0) return usage_error("no GPU is visible here; say cpu or a number");
  request.on_cpu = text == "cpu" || node.gpus == 0;
  request.per_node = request.on_cpu ? node.cores : node.gpus;
  if (!request.per_node) return unknown_here("cores");
  return {};
}

Result<> check_agreement(const SizeRequest& request) {
  if (request.per_node && request.most_per_node && *request.per_node != *request.most_per_node) {
    return usage_error(fmt::format("--nproc-per-node {} and --gpus-per-node {} disagree: give one of them",
                                   *request.per_node, *request.most_per_node));
  }
  if (!request.total) return {};
  std::int64_t total = *request.total;
  if (request.per_node && total % *request.per_node != 0) {
    return usage_error(fmt::format("--gpus {} and --nproc-per-node {} disagree: {} is not a multiple of {}", total,
                                   *request.per_node, total, *request.per_node));
  }
  if (!request.nodes) return {};
  std::int64_t nodes = request.nodes->most;
  if (request.per_node && total != nodes * *request.per_node) {
    return usage_error(
        fmt::format("--gpus {} disagrees with --nnodes {} times --nproc-per-node {}", total, nodes, *request.per_node));
  }
  if (total < nodes) {
    return usage_error(fmt::format("--gpus {} is less than --nnodes {}: a node would get nothing", total, nodes));
  }
  if (request.most_per_node && total > nodes * *request.most_per_node) {
    return usage_error(fmt::format("--gpus {} is more than --nnodes {} times --gpus-per-node {}", total, nodes,
                                   *request.most_per_node));
  }
  return {};
}

}  // namespace

std::optional<NodeRange> read_node_range(std::string_view text) {
  auto parts = split(text, ':');
  auto least = parse_integer(parts.front());
  auto most = parse_integer(parts.back());
  if (parts.size() > 2 || !least || !most || *least < 1 || *most < *least) return std::nullopt;
  return NodeRange{*least, *most};
}

Result<> check_node_count(std::string_view text) {
  if (read_node_range(text)) return {};
  return usage_error("not a number of nodes, such as 2, or a range, such as 2:4");
}

Result<> check_process_count(std::string_view text) {
  if (text == "auto" || text == "gpu" || text == "cpu" || parse_integer(text).value_or(0) > 0) return {};
  return usage_error("not a number of processes, auto, gpu or cpu");
}

bool counts_by_machine(const SizeOptions& options) {
  return !options.gpus && options.nproc_per_node && !parse_integer(*options.nproc_per_node);
}

Result<SizeRequest> read_size_request(const SizeOptions& options, const NodeResources& resources) {
  SizeRequest request;
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
    request.nodes = read_node_range(*options.nnodes);
  }
  if (options.nproc_per_node) {
    auto read = read_processes(*options.nproc_per_node, resources, request);
    if (!read) return std::move(read).error().with(fmt::format("--nproc-per-node {}", *options.nproc_per_node));
  }
  if (auto agreed = check_agreement(request); !agreed) return agreed.error();
  return request;
}

}  // namespace taas::plan
