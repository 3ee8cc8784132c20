// What the training library does otherwise on a GPU: sharded optimizers, their files, SyncBatchNorm, mixed precision.
// The scenarios are those of the tests over gloo. Ranks have a GPU each, or where there is one alone they share it.
// Without any: 77, which means skipped.
#include <iostream>
#include <string>

#include "gpu/gpu_scenarios.hpp"
#include "zero/shard_files_folder.hpp"

namespace {

constexpr const char* kScenarios[] = {
    // sharded optimizers beside DistributedDataParallel, fused kernels and others
    "zero_parity",
    "zero_scatter",
    "zero_clip",
    "zero_reload",
    "zero_memory",
    "zero_without_gradients",
    "zero_not_averaged",
    "zero_accumulated_branch",
    "zero_failed_backward",
    "zero_join_parity",
    "zero_join_clip",
    "zero_lasting_gathers",
    "zero_closed_parameters",
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
  auto fewer = all;
  fewer.world_size = ranks / 2;
  std::string text;
  for (const char* scenario : kScenarios) text += run(scenario, all);
  const taas::test::ShardFilesFolder folder;
  text += run("first_shard_world", all);
  text += run("second_shard_world", fewer);
  text += run("third_shard_world", all);
  return taas::test::end_with(text);
}
