#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "taas/data.hpp"
#include "training/data/data_events.hpp"
#include "training/data/data_run.hpp"
#include "training/data/shard_order.hpp"
#include "training/data/stream_position.hpp"
#include "training/making/batch_maker.hpp"
#include "training/making/data_task.hpp"

namespace taas {

/// A rank of the run, or the only process there is.
struct RankPlace {
  std::size_t rank = 0;
  std::size_t world_size = 1;
};

/// How far a loop has come.
struct DataEpoch {
  std::int64_t number = 0;
  std::int64_t taken = 0;                               ///< batches
  std::uint64_t digest = 0;                             ///< chained over them
  at::Tensor order;                                     ///< the default generator before the sampler drew
  std::optional<StreamPosition> stream = std::nullopt;  ///< of an iterable dataset, once a loop over it has begun
};

/// What the copies of a DataLoader share.
struct DataLoader::State {
  std::string name;
  DataLoaderOptions options;
  std::size_t num_workers = 0;  ///< logical ones of an iterable dataset; 0: the dataset has indices
  std::shared_ptr<BatchMaker> maker;
  DataEpoch epoch;                 ///< of the last loop, or of the one to come
  bool begun = false;              ///< a loop over it
  bool looped = false;             ///< at all, in this process
  std::uint64_t loops = 0;         ///< begun in this process that agree with other ranks'
  std::optional<DataEpoch> saved;  ///< where the next loop is to go on
  DataProgress totals;
  std::shared_ptr<DataRun> run;

  /// Of one rank's loop over the epoch `number`.
  [[nodiscard]] DataSeeds seeds(std::size_t rank, std::int64_t number) const;
  /// Of a stream that nothing was taken of.
  [[nodiscard]] StreamPosition stream_start(RankPlace place) const;
  /// A stream's batches, of one rank's loop over an epoch.
  [[nodiscard]] std::unique_ptr<ShardOrder> stream_order(const DataEpoch& of, RankPlace place) const;
  /// Throws CheckpointError where a stream was saved with other shards.
  void check_workers(std::size_t shards) const;
  /// Where a saved loop was, or the epoch behind the last loop.
  void begin_epoch();
};

}  // namespace taas
