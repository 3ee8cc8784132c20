#pragma once

#include <cstddef>
#include <span>

#include "base/error.hpp"
#include "base/fd.hpp"

namespace taas::data {

/// What data delivery says where the machine has no memory for so many bytes, and why: batches take the most of it.
Error no_memory(std::size_t bytes, int system_errno);

/// Memory that processes on this machine map and none can change any more: what is large of a dataset.
struct SealedMemory {
  Fd descriptor;
  std::size_t bytes = 0;

  static Result<SealedMemory> copy_of(std::span<const std::byte> bytes);
  /// Refuses a descriptor of something else, or of another size.
  static Result<SealedMemory> of(Fd descriptor, std::size_t bytes);
};

}  // namespace taas::data
