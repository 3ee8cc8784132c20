#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace taas {

/// Whose batch of a stream it is: the batch `turn` of one logical worker.
struct ShardPlace {
  std::uint64_t turn = 0;
  std::uint64_t worker = 0;
};

/// One batch that is to be made.
struct OrderedTask {
  std::string bytes;         ///< what its maker is given: see BatchMaker::make
  std::uint64_t home = 0;    ///< which data worker is to make it, modulo their number, where that matters
  std::size_t examples = 0;  ///< in the batch; 0: its maker says it
  std::optional<ShardPlace> shard = std::nullopt;  ///< of a stream
};

/// The batches of an epoch over one loader, in the order of the loop.
class BatchOrder {
 public:
  virtual ~BatchOrder() = default;
  /// Nothing when there are no more.
  virtual std::optional<OrderedTask> next() = 0;
  /// The task lies behind the end of its shard.
  virtual void ended(const OrderedTask& /*task*/) {}
};

}  // namespace taas
