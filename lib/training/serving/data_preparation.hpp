#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "training/data/data_plan.hpp"
#include "training/serving/known_loader.hpp"
#include "training/serving/loader_preparation.hpp"

namespace taas {

/// One data worker's share in all loaders that --loader names: each has an equal part of the memory, and their batches
/// are made in turn. Tells the launcher, which starts the ranks when all workers are done.
class DataPreparation {
 public:
  /// Throws ConfigError for a name that none of `loaders` has, and for a loader without a sampler.
  DataPreparation(const DataPlan& plan, const std::vector<KnownLoader>& loaders, std::size_t worker);

  [[nodiscard]] bool is_done() const { return turns_.empty(); }
  /// Makes one more batch.
  void step();
  /// The batch of a rank's task, if it is here. `loader` is the maker's description.
  std::optional<MadeBatch> take(const std::string& loader, const std::string& task);
  /// Tells how far it is, now and then, and the end until that got through. To be called often.
  void tend();

 private:
  bool report();

  WorkerPlace place_;
  std::map<std::string, std::unique_ptr<LoaderPreparation>> loaders_;  // by description
  std::deque<LoaderPreparation*> turns_;                               // those with batches to be made
  Instant reported_{};
  bool end_was_tried_ = false;
  bool end_is_told_ = false;
};

}  // namespace taas
