#include "training/checkpoint/crc32.hpp"

#include <array>
#include <bit>
#include <cstring>

namespace taas {
namespace {

static_assert(std::endian::native == std::endian::little, "crc32() takes numbers as they are in memory");

constexpr std::uint32_t kPolynomial = 0xedb88320;  // reflected: the bit of x^0 is the highest
constexpr std::uint32_t kOne = 1U << 31U;
constexpr std::size_t kSlices = 16;

using Tables = std::array<std::array<std::uint32_t, 256>, kSlices>;

constexpr std::uint32_t times_x(std::uint32_t value) {
  return (value & 1U) != 0 ? (value >> 1U) ^ kPolynomial : value >> 1U;
}

/// Table k: what a byte makes of the CRC that k more bytes follow.
constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    auto value = byte;
    for (int bit = 0; bit < 8; ++bit) value = times_x(value);
    tables[0][byte] = value;
  }
  for (std::size_t k = 1; k < kSlices; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const auto before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8U) ^ tables[0][before & 0xffU];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

/// Of polynomials, modulo the one of the CRC.
std::uint32_t product(std::uint32_t a, std::uint32_t b) {
  std::uint32_t sum = 0;
  for (auto bit = kOne; a != 0; bit >>= 1U) {
    if ((a & bit) != 0) sum ^= b;
    a &= ~bit;
    b = times_x(b);
  }
  return sum;
}

}  // namespace

/// Sixteen bytes at a time ("slicing", Kounavis and Berry 2008).
std::uint32_t crc32(const void* bytes, std::size_t size, std::uint32_t before) {
  const auto* at = static_cast<const unsigned char*>(bytes);
  auto crc = ~before;
  for (; size >= kSlices; size -= kSlices, at += kSlices) {
    std::array<std::uint32_t, 4> words{};
    std::memcpy(words.data(), at, kSlices);
    words[0] ^= crc;
    crc = 0;
    for (std::size_t w = 0; w < words.size(); ++w) {
      const auto* tables = &kTables[kSlices - 4 - 4 * w];
      const auto word = words[w];
      crc ^= tables[3][word & 0xffU] ^ tables[2][(word >> 8U) & 0xffU] ^ tables[1][(word >> 16U) & 0xffU] ^
             tables[0][word >> 24U];
    }
  }
  for (; size > 0; --size, ++at) crc = (crc >> 8U) ^ kTables[0][(crc ^ *at) & 0xffU];
  return ~crc;
}

/// `first` times x^(8 second_size), by repeated squaring.
std::uint32_t combined_crc32(std::uint32_t first, std::uint32_t second, std::uint64_t second_size) {
  auto power = times_x(kOne), factor = kOne;
  for (auto exponent = second_size * 8; exponent != 0; exponent >>= 1U) {
    if ((exponent & 1U) != 0) factor = product(factor, power);
    power = product(power, power);
  }
  return product(factor, first) ^ second;
}

}  // namespace taas
