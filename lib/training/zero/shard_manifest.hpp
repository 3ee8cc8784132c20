#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <string>
#include <vector>

#include "training/zero/shard_sets.hpp"
#include "training/zero/zero_state.hpp"

namespace taas {

/// A trained parameter as it was saved.
struct SavedParameter {
  std::int64_t index = 0;  ///< among all parameters of the optimizer, as everywhere here
  std::string type;
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> order;  ///< strides of the vector that shards are cut from; 0 where they do not matter
};

/// The elements begin…end-1 of a parameter, in the order of its memory.
struct ShardPiece {
  std::int64_t parameter = 0, begin = 0, end = 0;
};

struct ShardEntry {
  std::int64_t bytes = 0;  ///< of the file
  std::vector<ShardPiece> pieces;
};

/// What is in a set of shards.
struct ShardManifest {
  ShardSet set;
  c10::IValue groups;  ///< as in Python's state_dict()["param_groups"]
  std::vector<SavedParameter> parameters;
  std::vector<ShardEntry> shards;  ///< by rank
};

/// Of this optimizer, without the files' bytes. The same on all ranks.
ShardManifest manifest_of(const ShardSet& set, const FlatParameters& parameters, const c10::IValue& groups,
                          const StateMap& map);

/// Throws CheckpointError, with what follows the path, when the optimizer's parameters or groups are others.
void check_fits(const ShardManifest& manifest, const FlatParameters& parameters, const StateMap& map);

void publish_manifest(const std::string& path, const ShardManifest& manifest);
/// Throws CheckpointError, which names the path, as publish_manifest() does.
ShardManifest read_manifest(const std::string& path);

}  // namespace taas
