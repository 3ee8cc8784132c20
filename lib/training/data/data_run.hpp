#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "data/client/client.hpp"
#include "training/data/data_plan.hpp"

namespace taas {

/// What taas-run has for this process: its plan, and one client for all loaders when there are data workers.
class DataRun {
 public:
  /// The process' own, as long as somebody has it; null without a plan (TAAS_DATA_PLAN). Throws ConfigError.
  static std::shared_ptr<DataRun> of_process();

  explicit DataRun(const std::string& path);

  [[nodiscard]] const DataPlan& plan() const { return watched_.plan(); }
  /// Null: this process makes its batches itself.
  [[nodiscard]] data::Client* client() { return client_ ? &*client_ : nullptr; }
  [[nodiscard]] std::string worker_name(data::WorkerIndex index) const;
  /// Whether data workers make the first batches of this loader before there are ranks (--loader).
  [[nodiscard]] bool prepares(const std::string& loader) const;
  /// How many batches of `largest` bytes may be asked for ahead of the loop; 0 bytes: none is known yet.
  [[nodiscard]] std::size_t window(std::size_t largest) const;
  /// Follows the plan, and passes on what is to be said. To be called often.
  void tend();

 private:
  WatchedDataPlan watched_;
  std::optional<data::Client> client_;
};

}  // namespace taas
