// What the training library does otherwise on a GPU: sharded optimizers beside DistributedDataParallel, SyncBatchNorm
// beside BatchNorm on the whole batch, mixed precision. The scenarios are those of the tests over gloo. Ranks have a
// GPU each, or where there is one alone they share it. Without any: 77, which means skipped.
#include "gpu/gpu_scenarios.hpp"

int main() {
  const int gpus = taas::test::gpus_or_skip();
  if (gpus == 0) return taas::test::kSkipped;
  // A power of two: numbers that are averaged can be told in advance to the bit.
  const int ranks = gpus >= 4 ? 4 : 2;
  return taas::test::run_scenarios({"zero_parity", "zero_reload", "zero_files", "zero_memory", "sync_batch_norm",
                                    "sync_batch_norm_training", "scaled_training"},
                                   {.world_size = ranks, .on_gpu = true, .share_gpu = gpus == 1});
}
