#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "taas/data.hpp"
#include "training/data/data_events.hpp"
#include "training/data/data_run.hpp"
#include "training/making/batch_maker.hpp"
#include "training/making/data_task.hpp"

namespace taas {

/// How far a loop has come.
struct DataEpoch {
  std::int64_t number = 0;
  std::int64_t taken = 0;    ///< batches
  std::uint64_t digest = 0;  ///< chained over them
  at::Tensor order;          ///< the default generator before the sampler drew
};

/// What the copies of a DataLoader share.
struct DataLoader::State {
  std::string name;
  DataLoaderOptions options;
  std::shared_ptr<BatchMaker> maker;
  DataEpoch epoch;                 ///< of the last loop, or of the one to come
  bool begun = false;              ///< a loop over it
  bool looped = false;             ///< at all, in this process
  std::optional<DataEpoch> saved;  ///< where the next loop is to go on
  DataProgress totals;
  std::shared_ptr<DataRun> run;

  /// Of one rank's loop over the epoch `number`.
  [[nodiscard]] DataSeeds seeds(std::size_t rank, std::int64_t number) const;
};

}  // namespace taas
