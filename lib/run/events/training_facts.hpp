#pragma once

#include <boost/describe/class.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.hpp"

namespace taas::run {

/// One time that a rank saved a file.
struct SaveTime {
  std::int64_t began = 0;  ///< nanoseconds of the machine's monotonic clock
  std::int64_t ended = 0;
  std::int64_t step = 0;  ///< how often the optimizer had changed the parameters by then; 0: not known
};
/// A file that a rank wrote with torch.save, and that was still there when the rank ended.
struct SavedFile {
  std::string path;  ///< without symbolic links
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::vector<SaveTime> times;  ///< the first ones, in order
};
/// The random order in which the first loop over a registered loader had its samples.
struct ShuffledOrder {
  std::string loader;
  std::string digest;
};
/// What a Python rank has noticed of its own training by its end (lib/python/preload/taas_preload/training_facts.py).
struct TrainingFacts {
  bool trained = false;                 ///< it made an optimizer and computed gradients
  bool joined = false;                  ///< it had a process group of several, or uses a framework that needs none
  std::string framework;                ///< "accelerate", "lightning": what trained it; empty: torch itself
  bool counted_one = false;             ///< that framework took it for the only one, whatever groups there are
  std::string visible_gpus;             ///< CUDA_VISIBLE_DEVICES
  int gpus = 0;                         ///< that it saw; 0: it did not use CUDA
  std::vector<int> gpus_used;           ///< on which it held memory
  std::vector<int> data_parallel_gpus;  ///< of its first nn.DataParallel over several
  std::vector<ShuffledOrder> shuffled;  ///< of loaders that each rank has for itself
  std::vector<SavedFile> saved;
};

/// A rank tells them before its RankExited.
struct RankTrained {
  Generation generation;
  Rank rank;
  TrainingFacts facts;
};

// clang-format off
BOOST_DESCRIBE_STRUCT(SaveTime, (), (began, ended, step))
BOOST_DESCRIBE_STRUCT(SavedFile, (), (path, device, inode, times))
BOOST_DESCRIBE_STRUCT(ShuffledOrder, (), (loader, digest))
BOOST_DESCRIBE_STRUCT(TrainingFacts, (), (trained, joined, framework, counted_one, visible_gpus, gpus, gpus_used, data_parallel_gpus, shuffled, saved))
BOOST_DESCRIBE_STRUCT(RankTrained, (), (generation, rank, facts))
// clang-format on

}  // namespace taas::run
