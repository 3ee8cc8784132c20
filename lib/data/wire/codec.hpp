#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/error.hpp"

namespace taas::data {

enum class Compression { kNone, kLz4, kZstd };

/// A compressed payload is a sequence of chunks, each of so many bytes before compression, the last of what is left. A
/// chunk is its size on the wire in 4 bytes, the highest bit set where it is not compressed, and then that many bytes.
inline constexpr std::size_t kChunkBytes = std::size_t{1} << 20;
inline constexpr std::size_t kChunkHeader = 4;
inline constexpr std::uint32_t kStoredChunk = 0x80000000;

/// Appends one chunk. What compression does not make smaller is stored.
void append_chunk(std::string& to, std::span<const std::byte> bytes, Compression compression);

/// `into` has the size that the chunk has to have.
Result<> decode_chunk(std::span<const std::byte> chunk, bool stored, std::span<std::byte> into,
                      Compression compression);

/// On the wire a chunk is never larger than what it holds.
Result<std::size_t> chunk_size(std::uint32_t header, std::size_t holds);

}  // namespace taas::data
