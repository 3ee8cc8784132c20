#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "training/making/batch_maker.hpp"
#include "training/making/shard_reader.hpp"

namespace taas {

/// Batches of an iterable dataset. A pass over a shard is kept from task to task; a task that does not follow the last
/// one of its pass has the shard read from its beginning.
class StreamBatches : public BatchMaker {
 public:
  StreamBatches(StreamRecipe recipe, std::size_t num_workers) : recipe_(std::move(recipe)), num_workers_(num_workers) {}

  [[nodiscard]] std::string description() const override;
  /// `task` is a StreamTask.
  FreshBatch make(std::string_view task) override;
  void forget() override { kept_.clear(); }

 private:
  using Kept = std::pair<std::string, std::unique_ptr<ShardReader>>;
  std::unique_ptr<ShardReader> take(std::string_view shard, std::uint64_t turn);
  void keep(std::string_view shard, std::unique_ptr<ShardReader> reader);

  StreamRecipe recipe_;
  std::size_t num_workers_;
  std::deque<Kept> kept_;  // by what tasks of a shard have in common, the last used one behind
};

}  // namespace taas
