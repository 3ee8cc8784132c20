#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "training/making/batch_maker.hpp"
#include "training/making/stream_task.hpp"

namespace taas {

/// What makes batches of a stream's examples.
struct StreamRecipe {
  std::string loader;  ///< its name
  std::shared_ptr<IterableDataset> dataset;
  Collate collate;
  std::size_t batch_size = 1;
  bool drop_last = false;
};

/// One pass over a shard. A batch further on is reached by making, and dropping, those before it.
class ShardReader {
 public:
  /// Begins the pass that `task` belongs to. Throws what the dataset throws.
  ShardReader(const StreamRecipe& recipe, const StreamTask& task);

  /// Whether this batch can be had, or is known to lie behind the end. One that was had already needs another pass.
  [[nodiscard]] bool can_give(std::uint64_t turn) const { return turn >= std::min(turn_, end_); }
  /// As BatchMaker::make.
  FreshBatch batch(std::uint64_t turn);

 private:
  void skip();
  FreshBatch next();
  FreshBatch made_of(std::vector<Tensors> examples);
  [[nodiscard]] FreshBatch end() const { return {.tensors = {}, .head = StreamHead{.before = chain_, .examples = 0}}; }
  std::vector<Tensors> some();
  [[nodiscard]] std::string shard_name() const;
  [[nodiscard]] std::string place() const;

  const StreamRecipe& recipe_;
  StreamTask task_;                     // of the last batch
  std::unique_ptr<Examples> examples_;  // null: it has ended
  std::uint64_t turn_ = 0;              // the next one
  std::uint64_t end_ = UINT64_MAX;      // the first that is not there, once that is known
  std::uint64_t chain_ = 0;             // over the batches so far
};

}  // namespace taas
