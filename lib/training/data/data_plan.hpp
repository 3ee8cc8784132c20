#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "data/client/client.hpp"

namespace taas {

/// What taas-run tells ranks and data workers: the file TAAS_DATA_PLAN, which it replaces when something changes.
struct DataPlan {
  std::string run_id;
  std::string key;  ///< 32 bytes
  data::Encryption encryption = data::Encryption::kTls;
  data::Compression compression = data::Compression::kNone;
  std::vector<data::WorkerAddress> workers;
  std::size_t buffer_bytes = 0;  ///< of each rank
  std::uint64_t units = 0;       ///< samples of all ranks together; 0: all there are
  int world_size = 1;
  bool skips_errors = false;
  std::vector<std::string> loaders;  ///< --loader: those that data workers prepare before there are ranks

  /// How many samples this rank takes of each loader; 0: all there are.
  [[nodiscard]] std::uint64_t samples_wanted() const;
  /// The data worker at a home: see OrderedTask.
  [[nodiscard]] data::WorkerIndex worker_at(std::uint64_t home) const;
};

/// Throws ConfigError naming the file.
DataPlan read_data_plan(const std::string& path);

/// A plan that is read again when its file has been replaced.
class WatchedDataPlan {
 public:
  explicit WatchedDataPlan(std::string path);
  [[nodiscard]] const DataPlan& plan() const { return plan_; }
  /// True when there is another plan than at the last call. Looks at most five times a second.
  bool has_changed();

 private:
  std::string path_;
  std::int64_t mark_ = 0;
  Instant looked_;
  DataPlan plan_;
};

}  // namespace taas
