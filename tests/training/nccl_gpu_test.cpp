// Ranks meet over nccl: all collectives with tensors on the GPU, DDP, recorded steps. Each has a GPU of its own, or
// where there is one alone they share it. Without any: 77, which means skipped.
#include <algorithm>
#include <iostream>
#include <string>

#include "spawn_ranks.hpp"
#include "training/backend/nccl.hpp"

namespace {

/// Empty when all is well.
std::string run(const char* scenario, const taas::test::SpawnOptions& options) {
  const auto text = taas::test::problems(taas::test::spawn_ranks(TAAS_RANK_PROGRAM, scenario, options));
  return text.empty() ? "" : std::string(scenario) + ": " + text + "\n";
}

}  // namespace

int main() {
  const int gpus = taas::cuda_device_count();
  if (gpus == 0) {
    std::cout << "skipped: no NVIDIA GPU that this build can use\n";
    return 77;
  }
  std::string text;
  for (const char* scenario : {"nccl", "nccl_graph"}) text += run(scenario, {.world_size = std::min(gpus, 4)});
  const taas::test::SpawnOptions several{.world_size = gpus > 1 ? std::min(gpus, 4) : 2, .share_gpu = gpus == 1};
  for (const char* scenario : {"reductions", "movements", "point_to_point", "overlapping", "refusals", "exchange",
                               "types", "reduced_types", "nccl"}) {
    text += run(scenario, several);
  }
  std::cout << text;
  return text.empty() ? 0 : 1;
}
