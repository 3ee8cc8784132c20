#pragma once

#include <boost/describe/class.hpp>
#include <cstdint>
#include <string>
#include <variant>

#include "base/clock.hpp"
#include "base/ids.hpp"

namespace taas::run {

// What is told of data delivery while it goes on. Nothing is decided on these but the end of preparation.

/// One rank's loop over one loader: everything counts from the rank's start.
struct DataProgress {
  Rank rank;
  std::string loader;
  std::int64_t samples = 0;
  std::int64_t batches = 0;
  std::int64_t bytes = 0;
  double seconds = 0;  ///< that loops have been running
  double waited = 0;   ///< of these, with no batch there
  int buffered = 0;    ///< batches that are here and not taken
  int workers = 0;     ///< that are connected
  std::int64_t hedged = 0;
  bool done = false;  ///< the loop has ended; there may be another one
  Instant at{};
};
/// A data worker makes batches of --loader before ranks start.
struct DataPrepared {
  int worker = 0;  ///< its place in the list of all workers
  std::int64_t batches = 0;
  std::int64_t bytes = 0;
  bool done = false;
  Instant at{};
};
/// What a data worker has done since its process began: for the prediction of how many would do.
struct DataWork {
  int worker = 0;
  std::int64_t batches = 0;
  double busy = 0;     ///< seconds in which it made batches
  double seconds = 0;  ///< of its life
  Instant at{};
};
/// A data worker has ended by itself; another one takes its place.
struct DataWorkerEnded {
  int worker = 0;
  std::string name;
  std::string why;  ///< "was killed by SIGKILL"
  Instant at{};
};

using DataEvent = std::variant<DataProgress, DataPrepared, DataWork, DataWorkerEnded>;

// clang-format off
BOOST_DESCRIBE_STRUCT(DataProgress, (), (rank, loader, samples, batches, bytes, seconds, waited, buffered, workers,
                                         hedged, done, at))
BOOST_DESCRIBE_STRUCT(DataPrepared, (), (worker, batches, bytes, done, at))
BOOST_DESCRIBE_STRUCT(DataWork, (), (worker, batches, busy, seconds, at))
BOOST_DESCRIBE_STRUCT(DataWorkerEnded, (), (worker, name, why, at))
// clang-format on

}  // namespace taas::run
