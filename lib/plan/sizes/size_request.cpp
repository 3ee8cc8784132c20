#include "plan/sizes/size_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "base/environment/environment.hpp"
#include "base/text.hpp"
#include "plan/options/numbers.hpp"

namespace taas::plan {
namespace {

Error unknown_here(std::string_view what) {
  return usage_error(fmt::format("the {} of other machines are not known here; say a number", what));
}

/// How many processes "auto", "gpu", "cpu" or a number mean on a node.
Result<> read_processes(const SizeOptions& options, const NodeResources& node, SizeRequest& request) {
  const auto& text = *options.nproc_per_node;
  if (auto valid = check_process_count(text); !valid) return valid.error();
  if (auto number = parse_integer(text)) {
    request.per_node = number;
    return {};
  }
  if (text != "cpu" && node.gpus_by_node) return {};
  if (text != "cpu" && !node.gpus) return unknown_here("GPUs");
  if (text != "cpu" && !node.gpu_problem.empty()) return gpus_have_vanished(node.gpu_problem);
  if (text == "gpu" && node.gpus == 0) return usage_error("no GPU is visible here; say cpu or a number");
  if (text == "cpu" && options.devices_per_rank > 1) {
    return usage_error(fmt::format("ranks without GPUs have no use for --devices-per-rank {}: leave out one of them",
                                   options.devices_per_rank));
  }
  request.on_cpu = text == "cpu" || node.gpus == 0;
  request.per_node = request.on_cpu ? node.cores : ranks_for(*node.gpus, options);
  if (!request.per_node) return unknown_here("cores");
  return request.on_cpu ? Result<>() : check_groups(*node.gpus, "a node", options);
}

std::string name_most(const SizeRequest& request) {
  return fmt::format("--gpus-per-node {}", std::int64_t{*request.most_per_node} * request.devices_per_rank);
}

/// GPUs that the user has counted, as ranks.
Result<> count_in_ranks(std::optional<int>& gpus, const char* flag, int devices_per_rank) {
  if (!gpus) return {};
  if (*gpus % devices_per_rank != 0) {
    return usage_error(fmt::format("{} {} is not a multiple of --devices-per-rank {}", flag, *gpus, devices_per_rank));
  }
  *gpus /= devices_per_rank;
  return {};
}

Result<> check_agreement(const SizeRequest& request) {
  if (request.per_node && request.most_per_node && *request.per_node != *request.most_per_node) {
    return usage_error(
        fmt::format("--nproc-per-node {} and {} disagree: give one of them", *request.per_node, name_most(request)));
  }
  if (!request.total) return {};
  std::int64_t total = *request.total;
  if (request.per_node && total % *request.per_node != 0) {
    return usage_error(fmt::format("{} and --nproc-per-node {} disagree: {} is not a multiple of {}",
                                   name_total(request), *request.per_node, total, *request.per_node));
  }
  if (!request.nodes) return {};
  std::int64_t nodes = request.nodes->most;
  if (request.per_node && total != nodes * *request.per_node) {
    return usage_error(fmt::format("{} disagrees with --nnodes {} times --nproc-per-node {}", name_total(request),
                                   nodes, *request.per_node));
  }
  if (total < nodes) {
    return usage_error(
        fmt::format("{} is less than --nnodes {}: a node would get nothing", name_total(request), nodes));
  }
  if (request.most_per_node && total > nodes * *request.most_per_node) {
    return usage_error(
        fmt::format("{} is more than --nnodes {} times {}", name_total(request), nodes, name_most(request)));
  }
  return {};
}

}  // namespace

Error gpus_have_vanished(const std::string& problem, const char* way_out) {
  return usage_error(fmt::format("no GPU can be used here: {}; {} runs ranks on the CPU", problem, way_out));
}

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

bool has_slices(const Machine& machine) {
  auto visible = find_variable(machine.environment, "CUDA_VISIBLE_DEVICES");
  return visible && trim(*visible, " ").starts_with("MIG-");
}

int ranks_for(int gpus, const SizeOptions& options) { return std::max(1, gpus / options.devices_per_rank); }

int usual_ranks(int gpus, const SizeOptions& options) {
  return ranks_for(std::max(kDefaultGpusPerNode, gpus), options);
}

Result<> check_groups(int gpus, const std::string& where, const SizeOptions& options) {
  if (gpus % options.devices_per_rank == 0) return {};
  return usage_error(
      fmt::format("--devices-per-rank {}: {} has {}, which is not a multiple: --gpus N says how many to "
                  "use",
                  options.devices_per_rank, where, plural(gpus, "GPU")));
}

Result<> check_group_fits(int gpus, const SizeOptions& options) {
  if (gpus == 0 || options.devices_per_rank <= gpus) return {};
  return usage_error(
      fmt::format("--devices-per-rank {}: {} is visible here, and the devices of a rank are different "
                  "ones: --nproc-per-node N with CUDA_VISIBLE_DEVICES= tries the program on the CPU",
                  options.devices_per_rank, plural(gpus, "GPU")));
}

std::string name_total(const SizeRequest& request) {
  int each = request.devices_per_rank;
  if (each == 1) return fmt::format("--gpus {}", *request.total);
  return fmt::format("--gpus {} ({} of {} GPUs)", std::int64_t{*request.total} * each, plural(*request.total, "rank"),
                     each);
}

bool counts_by_machine(const SizeOptions& options) {
  return !options.gpus && options.nproc_per_node && !parse_integer(*options.nproc_per_node);
}

Result<SizeRequest> read_size_request(const SizeOptions& options, const NodeResources& resources) {
  SizeRequest request;
  request.devices_per_rank = options.devices_per_rank;
  request.total = options.gpus;
  request.most_per_node = options.gpus_per_node;
  if (request.total.value_or(1) < 1) {
    return usage_error(fmt::format("--gpus {}: at least 1 is needed", *request.total));
  }
  if (request.most_per_node.value_or(1) < 1) {
    return usage_error(fmt::format("--gpus-per-node {}: at least 1 is needed", *request.most_per_node));
  }
  if (auto whole = count_in_ranks(request.total, "--gpus", options.devices_per_rank); !whole) return whole.error();
  auto whole = count_in_ranks(request.most_per_node, "--gpus-per-node", options.devices_per_rank);
  if (!whole) return whole.error();
  if (options.nnodes) {
    auto valid = check_node_count(*options.nnodes);
    if (!valid) return std::move(valid).error().with(fmt::format("--nnodes {}", *options.nnodes));
    request.nodes = read_node_range(*options.nnodes);
  }
  if (options.nproc_per_node) {
    auto read = read_processes(options, resources, request);
    if (!read) return std::move(read).error().with(fmt::format("--nproc-per-node {}", *options.nproc_per_node));
  }
  if (auto agreed = check_agreement(request); !agreed) return agreed.error();
  return request;
}

}  // namespace taas::plan
