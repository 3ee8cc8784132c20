#pragma once

#include <optional>

namespace taas::ui {

/// What the data workers of a run have had to do.
struct DataLoad {
  int machines = 0;
  double busy_seconds = 0;      ///< in which workers made batches, all of them together
  double worker_seconds = 0;    ///< of the loops' time, all workers together: what they could have worked
  double training_seconds = 0;  ///< of the loops of the rank with the longest ones, without what they waited for data
  double loop_seconds = 0;      ///< the same with waiting
};

/// CPU machines that make batches as fast as training without a wait takes them: the work of the busy workers, done
/// within the training's own time, by workers that may be busy for nine tenths of it. Nothing when too little is known.
std::optional<int> machines_needed(const DataLoad& load);

}  // namespace taas::ui
