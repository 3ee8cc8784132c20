#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/client/client.hpp"
#include "training/making/batch_maker.hpp"

namespace taas {

/// A batch as it is sent: `keep` owns the buffers. They begin at multiples of 64, one behind the other.
struct MadeBatch {
  std::string description;
  std::vector<std::span<const std::byte>> buffers;
  std::shared_ptr<void> keep;

  /// Of all buffers, in bytes.
  [[nodiscard]] std::size_t size() const;
};

/// Kinds and sizes, on one line: "Float[64,3] Long[64]".
std::string describe(const Tensors& batch);
/// As a data worker sends it: the description has the batch's head in front.
MadeBatch made_batch(FreshBatch batch);
/// Of the payload that made_batch() becomes.
std::uint64_t payload_digest(const MadeBatch& batch);
/// Tensors in the memory that the batch came in; each keeps it. Throws DataError for a description of another release.
Tensors view_batch(const data::Batch& batch);

}  // namespace taas
