#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "taas/data.hpp"
#include "training/data/data_batch.hpp"
#include "training/data/data_events.hpp"
#include "training/data/data_run.hpp"
#include "training/data/data_staging.hpp"

namespace taas {

/// How far a loop has come.
struct DataEpoch {
  std::int64_t number = 0;
  std::int64_t taken = 0;    ///< batches
  std::uint64_t digest = 0;  ///< chained over them
  at::Tensor order;          ///< the default generator before the sampler drew
};

struct DataLoader::State {
  std::string name;
  std::shared_ptr<Dataset> dataset;
  DataLoaderOptions options;
  DataEpoch epoch;                 ///< of the last loop, or of the one to come
  bool begun = false;              ///< a loop over it
  std::optional<DataEpoch> saved;  ///< where the next loop is to go on
  DataProgress totals;
  std::shared_ptr<DataRun> run;

  [[nodiscard]] Tensors make(const DataTask& task) const { return make_batch(name, *dataset, options.collate, task); }
};

/// One epoch that is being looped over.
struct Batches::Loop {
  /// A batch, whoever has made it.
  struct Taken {
    Tensors tensors;
    std::uint64_t payload = 0;  ///< digest
    std::string description;
    std::size_t bytes = 0;
  };

  ~Loop();
  /// Goes on behind the batches that the loader's epoch has had.
  void begin();
  std::optional<Tensors> next();

  /// The next batch of indices with its seed; nothing when the sampler has no more.
  std::optional<DataTask> draw();
  /// Asks for as many batches as may be asked for.
  void fill();
  /// Nothing: the batch is left out.
  std::optional<Taken> take(const DataTask& task);
  Taken make(const DataTask& task);
  Taken receive();
  DataStaging::Staged wait_for_next();
  Tensors count(const DataTask& task, Taken taken);
  [[nodiscard]] bool has_enough() const;
  void finish();
  /// To the launcher: once a second, and at the end.
  void report();
  [[nodiscard]] data::Client* client() const { return loader->run ? loader->run->client() : nullptr; }

  std::shared_ptr<DataLoader::State> loader;
  torch::data::samplers::Sampler<>* sampler = nullptr;
  DataSeeds seeds;
  DataStaging staging;
  data::StreamId stream = 0;
  std::deque<DataTask> asked;  ///< drawn and not taken
  std::uint64_t drawn = 0;     ///< batches of the epoch
  std::size_t largest = 0;     ///< batch so far, in bytes
  bool drained = false;        ///< the sampler has no more
  bool done = false;
  Instant since = steady_now();
  Instant reported{};
};

}  // namespace taas
