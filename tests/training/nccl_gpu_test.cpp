// Ranks with a GPU each meet over nccl, and replay recorded steps; with one GPU, one process finds and uses it. Without
// any: 77, which means skipped.
#include <algorithm>
#include <iostream>
#include <string>

#include "spawn_ranks.hpp"
#include "training/backend/nccl.hpp"

int main() {
  const int gpus = taas::cuda_device_count();
  if (gpus == 0) {
    std::cout << "skipped: no NVIDIA GPU that this build can use\n";
    return 77;
  }
  std::string text;
  for (const char* scenario : {"nccl", "nccl_graph"}) {
    text +=
        taas::test::problems(taas::test::spawn_ranks(TAAS_RANK_PROGRAM, scenario, {.world_size = std::min(gpus, 4)}));
  }
  std::cout << text;
  return text.empty() ? 0 : 1;
}
