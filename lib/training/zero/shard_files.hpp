#pragma once

#include <string>
#include <vector>

#include "taas/checkpoint.hpp"
#include "training/zero/zero_state.hpp"

namespace taas {

/// A sharded optimizer, for its files.
struct ShardedState {
  const ProcessGroup& group;
  const FlatParameters& parameters;
  std::vector<BucketOptimizer>& buckets;
  const StateMap& map;
};

// ZeroOptimizer::save_shards() and load_shards(). Collectives.
void save_shard_files(const ShardedState& state, const std::string& directory, const Checkpoint& rest);
Checkpoint load_shard_files(const ShardedState& state, const std::string& directory);

}  // namespace taas
