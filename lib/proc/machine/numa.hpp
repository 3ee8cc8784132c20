#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment/environment.hpp"
#include "base/error.hpp"
#include "base/numa_binding.hpp"

namespace taas {

/// A logical CPU that this process may use, as /sys/devices/system has it.
struct Cpu {
  int number = 0;
  int node = 0;
  int socket = 0;
  int core = 0;     ///< the lowest CPU of its core
  int complex = 0;  ///< the lowest CPU with which it shares its last cache
};

/// CPUs in the affinity mask of this process.
std::set<int> usable_cpus();

/// In the order of their numbers. `system` is the folder.
std::vector<Cpu> read_cpus(const std::set<int>& usable, const std::string& system = "/sys/devices/system");

/// The NUMA node of an NVIDIA GPU that CUDA_VISIBLE_DEVICES has as `gpu`: a number, or the start of a UUID. Nothing
/// when it is not known: numbers are CUDA's, which are those of the bus where all GPUs are of one model, or where the
/// environment says so (CUDA_DEVICE_ORDER). `proc` and `sys` are these folders.
std::optional<int> numa_node_of_gpu(std::string_view gpu, const Environment& environment,
                                    const std::string& proc = "/proc", const std::string& sys = "/sys");

/// The NUMA nodes of so many ranks without GPUs: as even as can be, neighbours together.
std::vector<int> spread_over_nodes(const std::vector<Cpu>& cpus, int ranks);

/// The CPUs of each rank, by the NUMA node that it is near. Fails where a node has fewer cores than ranks that are to
/// have some for themselves, or no CPU that this process may use.
Result<std::vector<std::vector<int>>> bind_to_cpus(NumaBinding binding, const std::vector<Cpu>& cpus,
                                                   const std::vector<int>& nodes_of_ranks);

}  // namespace taas
