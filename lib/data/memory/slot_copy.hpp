#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/wire/digest.hpp"

namespace taas::data {

/// Buffers on their way into a slot, one behind the other. A step copies a part of them, so that who copies several GiB
/// can listen to its link in between.
class SlotCopy {
 public:
  explicit SlotCopy(std::vector<std::span<const std::byte>> buffers);

  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] bool is_done() const { return copied_ == bytes_; }
  /// Copies at most about so many bytes further. `slot` is the same memory at every step.
  void step(std::span<std::byte> slot, std::size_t most);
  /// Of all that is copied.
  [[nodiscard]] std::uint64_t digest() const { return digest_.value(); }

 private:
  std::vector<std::span<const std::byte>> buffers_;
  std::size_t bytes_;
  std::size_t copied_ = 0;
  std::size_t next_ = 0;  ///< the buffer that is copied now; what is done of it is cut off
  Digest digest_;
};

}  // namespace taas::data
