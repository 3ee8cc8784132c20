#pragma once

#include <cstdint>
#include <string>

namespace taas {

/// How a loader has done, over all its loops.
struct DataProgress {
  int rank = 0;
  std::string loader;
  std::uint64_t samples = 0;
  std::uint64_t batches = 0;
  std::uint64_t bytes = 0;
  double seconds = 0;  ///< of its loops
  double waited = 0;   ///< of them, for batches
  int buffered = 0;
  int workers = 0;
  std::uint64_t hedged = 0;
  bool done = false;
};

/// Tells the launcher (TAAS_EVENTS), and does nothing without one. Waits for it at most a moment, and only at a loop's
/// end.
void report_data(const DataProgress& progress);

/// What a data worker has made before there are ranks.
struct DataPrepared {
  int worker = 0;
  std::uint64_t batches = 0;
  std::uint64_t bytes = 0;
  bool done = false;
};

/// Tells the launcher, which starts the ranks when all workers are done. False when it was not told: its queue was
/// full, and of the end also after a moment, or there is no launcher.
bool report_prepared(const DataPrepared& prepared);

/// One line for people: to the launcher, or without one to stderr.
void remark_on_data(const std::string& text);

}  // namespace taas
