// Ranks meet over nccl: all collectives with tensors on the GPU, DDP. Each has a GPU of its own, or where there is one
// alone they share it. Without any: 77, which means skipped.
#include <algorithm>

#include "gpu/gpu_scenarios.hpp"

int main() {
  const int gpus = taas::test::gpus_or_skip();
  if (gpus == 0) return taas::test::kSkipped;
  const int alone = taas::test::run_scenarios({"nccl"}, {.world_size = std::min(gpus, 4)});
  const int together =
      taas::test::run_scenarios({"reductions", "reduced_types", "movements", "overlapping", "refusals", "nccl"},
                                {.world_size = gpus > 1 ? std::min(gpus, 4) : 2, .share_gpu = gpus == 1});
  return std::max(alone, together);
}
