#include "training/making/stream_batches.hpp"

#include <torch/types.h>

#include <algorithm>

#include "taas/error.hpp"

namespace taas {
namespace {

constexpr std::size_t kMostKept = 64;  // passes: ranks, and their epochs, are not in step

}  // namespace

std::string StreamBatches::description() const {
  auto whole = recipe_.drop_last ? " whole" : "";
  return "'" + recipe_.loader + "' streamed in" + whole + " batches of " + std::to_string(recipe_.batch_size) + " by " +
         std::to_string(num_workers_) + " logical workers";
}

FreshBatch StreamBatches::make(std::string_view bytes) {
  const at::NoGradGuard no_gradients;
  auto task = StreamTask::from_bytes(bytes);
  if (!task) throw DataError("a task of '" + recipe_.loader + "' is of another release of taas");
  auto shard = StreamTask::shard_in(bytes);
  auto reader = take(shard, task->turn);
  if (!reader) reader = std::make_unique<ShardReader>(recipe_, *task);
  try {
    auto batch = reader->batch(task->turn);
    keep(shard, std::move(reader));
    return batch;
  } catch (const DataError&) {  // the pass goes on behind it; where memory is missing it begins anew
    keep(shard, std::move(reader));
    throw;
  }
}

std::unique_ptr<ShardReader> StreamBatches::take(std::string_view shard, std::uint64_t turn) {
  auto found = std::find_if(kept_.begin(), kept_.end(), [shard](const Kept& kept) { return kept.first == shard; });
  if (found == kept_.end()) return nullptr;
  auto reader = std::move(found->second);
  kept_.erase(found);
  return reader->can_give(turn) ? std::move(reader) : nullptr;
}

void StreamBatches::keep(std::string_view shard, std::unique_ptr<ShardReader> reader) {
  kept_.emplace_back(shard, std::move(reader));
  if (kept_.size() > std::max(kMostKept, 2 * num_workers_)) kept_.pop_front();
}

}  // namespace taas
