#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace taas::data {

/// XXH3 (64 bits, seed 0) of bytes that come in pieces. Against accidents alone: anybody can make bytes with a given
/// digest.
class Digest {
 public:
  Digest();
  ~Digest();
  Digest(Digest&&) noexcept;
  Digest& operator=(Digest&&) noexcept;

  void add(std::span<const std::byte> bytes);
  [[nodiscard]] std::uint64_t value() const;
  /// As new.
  void reset();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::uint64_t digest_of(std::span<const std::byte> bytes);

}  // namespace taas::data
