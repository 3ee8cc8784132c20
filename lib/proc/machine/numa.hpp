#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/ranks/numa_binding.hpp"
#include "proc/machine/gpu_memory.hpp"
#include "proc/machine/machine.hpp"

namespace taas {

/// Ranks of this machine that are to be bound.
struct NumaRequest {
  NumaBinding binding = NumaBinding::kNode;
  /// The first of each rank, as CUDA_VISIBLE_DEVICES names it; none: it is on the CPU.
  std::vector<std::optional<std::string>> gpus;
  GpuOrder order = GpuOrder::kFastestFirst;  ///< of numbers among `gpus`
  bool has_slices = false;                   ///< MIG: which GPU a number means is not certain
  Processors usable;                         ///< by this process
};

/// Where this machine's layout is read.
struct NumaFiles {
  std::string sys = "/sys";
  std::string driver = "/proc/driver/nvidia";
  std::string dev = "/dev";
};

/// The processors of each rank, ascending. Ranks on the CPU are spread over the nodes by their processors. Which ones a
/// binding means is as in torch/numa/binding.py, but that a node is shared by its ranks here, and there by all its
/// GPUs. The error says what the machine has too little of, or of which GPU the node is not known.
Result<std::vector<Processors>> bind_to_numa(const NumaRequest& request, const NumaFiles& files = {});

/// Binds the calling thread, and has its memory come from the node that it runs on. Makes system calls only, for a
/// process that shares its parent's memory; false: errno says why.
bool bind_this_thread(const Processors& processors);

}  // namespace taas
