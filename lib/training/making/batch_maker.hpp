#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "taas/dataset.hpp"

namespace taas {

/// Makes the batches of one loader, in the rank or in a data worker. One thread at a time.
class BatchMaker {
 public:
  virtual ~BatchMaker() = default;
  /// By which ranks and data workers know that they mean the same.
  [[nodiscard]] virtual std::string description() const = 0;
  /// The batch of a task, as its bytes say it: contiguous and without gradients. Nothing lies behind the end of a
  /// shard. Seeds the default generator. Throws DataError naming the place at which the dataset's code has thrown, and
  /// for a task of another release; std::bad_alloc where another process may have the memory.
  virtual std::optional<Tensors> make(std::string_view task) = 0;
};

}  // namespace taas
