// Ranks meet over nccl: all collectives with tensors on the GPU, DDP, recorded steps. Each has a GPU of its own, or
// where there is one alone they share it. Without any: 77, which means skipped.
#include <algorithm>
#include <string>

#include "gpu/gpu_scenarios.hpp"

using taas::test::problems_of;

int main() {
  const int gpus = taas::test::gpus_or_skip();
  if (gpus == 0) return taas::test::kSkipped;
  std::string text;
  for (const char* scenario : {"nccl", "nccl_graph"}) text += problems_of(scenario, {.world_size = std::min(gpus, 4)});
  const taas::test::SpawnOptions several{.world_size = gpus > 1 ? std::min(gpus, 4) : 2, .share_gpu = gpus == 1};
  for (const char* scenario : {"reductions", "movements", "point_to_point", "overlapping", "refusals", "exchange",
                               "types", "reduced_types", "nccl"}) {
    text += problems_of(scenario, several);
  }
  return taas::test::end_with(text);
}
