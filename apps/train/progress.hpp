#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "options.hpp"

namespace taas::train {

/// How well a model does on all test images, over all ranks.
struct Score {
  double loss = 0;  ///< mean
  std::int64_t correct = 0;
  std::int64_t count = 0;
  [[nodiscard]] double accuracy() const { return 100.0 * static_cast<double>(correct) / static_cast<double>(count); }
};

/// Tells on standard output how far the training is: one line that rewrites itself on a terminal, else plain lines, two
/// seconds apart; or, on both, a line every so many steps. Silent on all ranks but 0.
class Progress {
 public:
  /// `log_every`: steps from line to line; 0: by time.
  Progress(int rank, int world_size, int epochs, std::int64_t log_every);

  /// `examples`: how many there are to learn from.
  void begin_run(const std::string& device, std::string_view backend, const std::string& examples,
                 const Options& options);
  void begin_epoch(int epoch, std::int64_t steps);
  /// Whether this step's loss will be shown: it costs a wait for the device.
  [[nodiscard]] bool wants_loss(std::int64_t step) const;
  /// `samples`: those of this rank since the epoch began; shown for all ranks.
  void show(std::int64_t step, double loss, std::int64_t samples);
  /// Without a score where nothing is tested.
  void end_epoch(const std::optional<Score>& score) const;
  void end_run(const std::optional<Score>& score, const Options& options) const;
  void say(const std::string& line) const;

 private:
  using Clock = std::chrono::steady_clock;
  bool speaks_;
  bool terminal_;
  int world_size_;
  int epochs_;
  std::int64_t log_every_;
  int epoch_ = 0;
  std::int64_t steps_ = 0;
  Clock::time_point start_ = Clock::now();
  Clock::time_point epoch_start_ = start_;
  Clock::time_point shown_ = start_;
};

}  // namespace taas::train
