#pragma once

#include <ATen/core/ivalue.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "training/data/data_order.hpp"

namespace taas {

/// How far a loop over a stream has come.
struct StreamPosition {
  std::uint64_t rank = 0;  ///< whose stream it is
  std::uint64_t world_size = 1;
  ShardPlace next;                ///< the batch behind the last one; its shard may have ended
  std::set<std::uint64_t> ended;  ///< logical workers whose shards have no more
  /// By logical worker: chain_digest over its batches. Nothing: one of them never came, so that it is not known.
  std::vector<std::optional<std::uint64_t>> chains;

  /// The loop has got to this batch.
  void pass(const ShardPlace& place);
};

c10::IValue to_value(const StreamPosition& position);
/// Throws std::exception for something else.
StreamPosition stream_position(const c10::IValue& value);

}  // namespace taas
