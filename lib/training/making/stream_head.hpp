#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace taas {

/// What the maker of a stream's batch says besides: in front of the batch's description, as "<before>:<examples> ".
struct StreamHead {
  std::uint64_t before = 0;  ///< chain_digest over all batches of its pass that lie before this one
  std::size_t examples = 0;  ///< in the batch

  /// There is no batch: its shard has ended before. So the end is compared as batches are.
  [[nodiscard]] bool is_end() const { return examples == 0; }
  [[nodiscard]] std::string to_text() const;
};

/// A batch's description as it came, in its two parts.
struct HeadAndRest {
  std::optional<StreamHead> head;  ///< none: the batch is not a stream's
  std::string_view rest;           ///< kinds and sizes of the tensors
};
HeadAndRest split_head(std::string_view description);

}  // namespace taas
