#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstring>

namespace taas::data {

/// Integers as they lie on the wire, whatever this machine's order is.
template <std::unsigned_integral T>
void store(std::byte* to, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) to[i] = static_cast<std::byte>(value >> (8 * i) & 0xff);
}

template <std::unsigned_integral T>
T load(const std::byte* from) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value |= static_cast<T>(static_cast<T>(from[i]) << (8 * i));
  return value;
}

}  // namespace taas::data
