#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "run/events/data_events.hpp"
#include "ui/view/machines_needed.hpp"

namespace taas::ui {

/// What data delivery does, over all ranks: one row a loader while it goes on, and a judgement at the end. Pure.
class DataProgressView {
 public:
  struct Options {
    int machines = 0;      ///< CPU machines; 0: loaders are plain
    bool on_gpus = false;  ///< whether ranks have GPUs, for the words
  };
  explicit DataProgressView(Options options) : options_(options) {}

  void update(const run::DataEvent& event);
  /// "data train: 12,345 samples/s, 5.2 GB/s | 12 batches buffered | waited 0.3 %"; before the first loop what is
  /// prepared. Without colour, not clipped.
  [[nodiscard]] std::vector<std::string> rows() const;
  /// "data: train: 1,234,567 samples in 61.3 s, 5.2 GB/s; the GPUs waited 0.3 % for data; 2 CPU machines would have
  /// been enough".
  [[nodiscard]] std::vector<std::string> verdict() const;

 private:
  struct Counts {
    double samples = 0;
    double batches = 0;
    double bytes = 0;
    double seconds = 0;
    double waited = 0;
    Counts& operator+=(const Counts& more);
  };
  /// Of one rank and loader, or of one worker: what was told last, and what former processes had done before.
  struct Source {
    Counts last;
    Counts before;
    int buffered = 0;
    void take(const Counts& now);
    [[nodiscard]] Counts all() const;
  };
  struct Moment {
    Instant at{};
    Counts counts;
  };
  struct Loader {
    std::map<int, Source> of_rank;
    std::deque<Moment> recent;  // sums over all ranks, of the last seconds
    bool has_workers = false;   // or ranks make its batches themselves
    [[nodiscard]] Counts sum() const;
    [[nodiscard]] double longest() const;
    [[nodiscard]] int buffered() const;
  };

  void take(const run::DataProgress& progress);
  void take(const run::DataPrepared& prepared) { prepared_[prepared.worker] = prepared; }
  void take(const run::DataWork& work);
  void take(const run::DataWorkerEnded&) {}
  [[nodiscard]] std::string row(const std::string& name, const Loader& loader) const;
  [[nodiscard]] std::string preparation() const;
  [[nodiscard]] std::string prediction() const;

  Options options_;
  std::map<std::string, Loader> loaders_;
  std::map<int, Source> workers_;  // seconds: of their lives; waited: not busy in them
  std::map<int, run::DataPrepared> prepared_;
};

}  // namespace taas::ui
