#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "training/zero/shard_manifest.hpp"

namespace taas {

/// The file of this rank: the state of its parts, by the index of the parameter. It shares the optimizers' memory.
c10::IValue shard_value(const ShardSet& set, int rank, const std::vector<BucketOptimizer>& buckets,
                        const StateMap& map);

/// The states of some parts, put together from the pieces of shards that were cut otherwise.
class GatheredParts {
 public:
  GatheredParts(const FlatParameters& parameters, const StateMap& map);

  /// Reads of a shard what belongs to these parts, and nothing where nothing does. Throws CheckpointError, which names
  /// the file, where it is damaged or not the one that the manifest describes.
  void read(const std::string& path, const ShardManifest& manifest, std::size_t rank);

  /// None: the parameter had no state. Throws CheckpointError where a part of it has one and another has none.
  [[nodiscard]] std::optional<c10::impl::GenericDict> state_of(std::size_t index) const;

 private:
  struct Part {
    std::int64_t begin = 0, end = 0;
    std::int64_t found = 0;  // elements that have a state
    c10::impl::GenericDict state;
  };
  void add(Part& part, const ShardPiece& piece, const c10::impl::GenericDict& saved, class PickledFile& file);

  std::unordered_map<std::int64_t, Part> parts_;
};

}  // namespace taas
