#pragma once

#include <vector>

#include "data/schedule/schedule.hpp"
#include "run/random.hpp"

namespace taas::sim_data {

using run::Random;

/// One loader of the rank.
struct LoaderSettings {
  int epochs = 1;
  int batches = 1;        ///< of an epoch
  int taken = 1;          ///< of them by the loop: fewer when it ends early
  int ahead = 1;          ///< how many are submitted and not taken
  int shards = 0;         ///< of an iterable dataset, pinned; 0: indices, which anybody can make
  bool prepared = false;  ///< some worker has its batches ready, and is preferred
  Duration cost{};        ///< of one batch on a worker of speed 1
  int slow_percent = 0;   ///< batches that
  int slow_factor = 1;    ///< take so many times as long
  Duration step{};        ///< of the loop, between two batches
  Duration begins{};      ///< when the loop asks for its first one; it is submitted at once
};

/// What kind of world a simulated run takes place in.
struct Settings {
  data::SchedulePolicy policy;
  int credits = 8;
  std::vector<double> slowness;  ///< of each worker that is there from the beginning
  std::vector<LoaderSettings> loaders;
  Duration delay{};       ///< of the wire, one way
  bool abandons = false;  ///< workers stop what is withdrawn while they make it
  int returns = 0;        ///< percent of (worker, batch) that cannot be
  int faults = 0;
  data::WorkerIndex frozen = -1;  ///< one that is frozen after a second, for good
  bool credits_change = false;
  int checkpoint_every = 1;  ///< batches
};

/// Draws a world with everything that may go wrong.
Settings draw_settings(Random& random);

}  // namespace taas::sim_data
