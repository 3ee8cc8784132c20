// What the training library does otherwise on a GPU: sharded optimizers, SyncBatchNorm, mixed precision.
// The scenarios are those of the tests over gloo. Ranks have a GPU each, or where there is one alone they share it.
// Without any: 77, which means skipped.
#include <iostream>
#include <string>

#include "gpu/gpu_scenarios.hpp"

namespace {

constexpr const char* kScenarios[] = {
    // sharded optimizers beside DistributedDataParallel
    "zero_parity",
    "zero_reload",
    "zero_files",
    "zero_memory",
    // SyncBatchNorm beside BatchNorm on the whole batch
    "sync_batch_norm",
    "sync_batch_norm_empty",
    "sync_batch_norm_training",
    // types of fewer bits
    "scaled_training",
    "scale_shards",
    "clip_shards",
    "precision_of_parameters",
    "precision_in_evaluation",
    "precision_of_the_sum",
    "precision_of_buffers",
    "precision_of_accumulated_gradients",
    "precision_of_unused_parameters",
    "precision_after_the_wrapper",
};

/// Empty when all is well.
std::string run(const char* scenario, const taas::test::SpawnOptions& options) {
  auto text = taas::test::problems_of(scenario, options);
  std::cout << (text.empty() ? "ok: " : "FAILED: ") << scenario << ", " << options.world_size << " ranks" << std::endl;
  return text;
}

}  // namespace

int main() {
  const int gpus = taas::test::gpus_or_skip();
  if (gpus == 0) return taas::test::kSkipped;
  // A power of two: numbers that are averaged can be told in advance to the bit.
  const int ranks = gpus >= 4 ? 4 : 2;
  const taas::test::SpawnOptions all{.world_size = ranks, .on_gpu = true, .share_gpu = gpus == 1};
  std::string text;
  for (const char* scenario : kScenarios) text += run(scenario, all);
  return taas::test::end_with(text);
}
