#pragma once

#include <cstddef>
#include <span>

#include "base/error.hpp"
#include "base/fd.hpp"

namespace taas {

/// Pages mapped into this process, unmapped at the end of its life. All of them are there already: no page faults
/// later. Where they cannot be had, the error's `system_errno` says why.
class Mapping {
 public:
  Mapping() = default;
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

  /// Memory of this process alone, in huge pages where the machine gives them.
  static Result<Mapping> of_own_memory(std::size_t bytes);
  /// The first `bytes` of what `memory` is.
  static Result<Mapping> of(const Fd& memory, std::size_t bytes);
  /// The same, to be read and not written. Pages come as they are read.
  static Result<Mapping> to_read(const Fd& memory, std::size_t bytes);

 private:
  explicit Mapping(std::span<std::byte> bytes) : bytes_(bytes) {}
  std::span<std::byte> bytes_;
};

/// Memory that another process can map too. It can neither grow nor shrink.
Result<Fd> make_shared_memory(std::size_t bytes);
/// Whether a descriptor from elsewhere is such memory of at least this size, so that no access to it can end in SIGBUS.
bool is_shared_memory(const Fd& memory, std::size_t bytes);

}  // namespace taas
