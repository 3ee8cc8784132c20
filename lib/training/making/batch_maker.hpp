#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "taas/dataset.hpp"
#include "training/making/stream_head.hpp"

namespace taas {

/// A batch as its maker has made it.
struct FreshBatch {
  Tensors tensors;
  std::optional<StreamHead> head = std::nullopt;  ///< of a stream's batch
};

/// Makes the batches of one loader, in the rank or in a data worker. One thread at a time.
class BatchMaker {
 public:
  virtual ~BatchMaker() = default;
  /// By which ranks and data workers know that they mean the same.
  [[nodiscard]] virtual std::string description() const = 0;
  /// The batch of a task, as its bytes say it: contiguous and without gradients. Behind the end of a shard it has no
  /// tensors, and a head that says so. Seeds the default generator. Throws DataError naming the place at which the
  /// dataset's code has thrown, and for a task of another release; std::bad_alloc where another process may have the
  /// memory.
  virtual FreshBatch make(std::string_view task) = 0;
  /// No task of the present loops will come any more: what is kept for them is let go.
  virtual void forget() {}
};

}  // namespace taas
