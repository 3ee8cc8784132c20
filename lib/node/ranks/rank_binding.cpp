#include "node/ranks/rank_binding.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "proc/machine/gpu_driver.hpp"
#include "proc/machine/numa.hpp"
#include "proc/spawn/python.hpp"

namespace taas::node {
namespace {

/// As its own environment names it: a rank that sees its own devices alone has the first, others that of LOCAL_RANK.
std::optional<int> node_of_gpu(const RankStart& start, bool sees_its_own, const plan::Machine& machine) {
  auto visible = find_variable(start.environment, "CUDA_VISIBLE_DEVICES");
  auto local_rank = find_variable(start.environment, "LOCAL_RANK");
  const int index = sees_its_own || !local_rank ? 0 : std::atoi(std::string(*local_rank).c_str());
  auto gpu = name_of_visible_gpu(index, visible ? std::optional<std::string_view>(*visible) : std::nullopt);
  return gpu ? numa_node_of_gpu(*gpu, machine.environment) : std::nullopt;
}

}  // namespace

Result<std::vector<std::vector<int>>> cpus_of_ranks(const std::vector<RankStart>& starts,
                                                    const plan::LaunchSettings& settings,
                                                    const plan::Machine& machine) {
  const auto& size = settings.options.size;
  const auto binding = numa_binding_of(size.numa_binding).value_or(NumaBinding::kNone);
  if (binding == NumaBinding::kNone) return std::vector<std::vector<int>>(starts.size());
  const auto cpus = read_cpus(usable_cpus());
  if (settings.device == plan::Device::kCpu || machine.gpus == 0) {
    return bind_to_cpus(binding, cpus, spread_over_nodes(cpus, static_cast<int>(starts.size())));
  }
  std::vector<int> nodes;
  for (const auto& start : starts) {
    auto node = node_of_gpu(start, size.devices_per_rank > 1, machine);
    if (!node) {
      return usage_error(
          fmt::format("the NUMA node of rank {}'s GPU is not known: name GPUs by UUID in "
                      "CUDA_VISIBLE_DEVICES, or set CUDA_DEVICE_ORDER=PCI_BUS_ID",
                      start.rank.value));
    }
    nodes.push_back(*node);
  }
  return bind_to_cpus(binding, cpus, nodes);
}

}  // namespace taas::node
