#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "options.hpp"

namespace taas::train {

/// How well a model does on all test images, over all ranks.
struct Score {
  double loss = 0;  ///< mean
  std::int64_t correct = 0;
  std::int64_t count = 0;
  [[nodiscard]] double accuracy() const { return 100.0 * static_cast<double>(correct) / static_cast<double>(count); }
};

/// Tells on standard output how far the training is. Silent on all ranks but 0.
class Progress {
 public:
  Progress(int rank, int world_size, const Options& options);

  void say(const std::string& line) const;
  void begin_epoch(int epoch, std::int64_t steps);
  /// Whether this step's loss will be shown: it costs a wait for the device.
  [[nodiscard]] bool wants_loss(std::int64_t step) const;
  /// `samples`: those of this rank since the epoch began; shown for all ranks.
  void show(std::int64_t step, double loss, std::int64_t samples);
  void end_epoch(const Score& score) const;
  void end_run(const Score& score) const;

 private:
  using Clock = std::chrono::steady_clock;
  bool speaks_;
  int world_size_;
  const Options& options_;
  int epoch_ = 0;
  std::int64_t steps_ = 0;
  Clock::time_point start_ = Clock::now();
  Clock::time_point epoch_start_ = start_;
  Clock::time_point shown_ = start_;
};

}  // namespace taas::train
