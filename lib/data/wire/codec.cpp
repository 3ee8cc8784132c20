#include "data/wire/codec.hpp"

#include <fmt/format.h>
#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>

#include "data/wire/little_endian.hpp"

namespace taas::data {

namespace {

constexpr int kZstdLevel = 1;

/// 0: it does not get smaller than `room`.
std::size_t compress(std::span<const std::byte> bytes, char* to, std::size_t room, Compression compression) {
  if (compression == Compression::kLz4) {
    const auto size = ::LZ4_compress_default(reinterpret_cast<const char*>(bytes.data()), to,
                                             static_cast<int>(bytes.size()), static_cast<int>(room));
    return static_cast<std::size_t>(std::max(size, 0));
  }
  const auto size = ::ZSTD_compress(to, room, bytes.data(), bytes.size(), kZstdLevel);
  return ::ZSTD_isError(size) ? 0 : size;
}

/// Whether it was exactly the bytes that `into` has place for.
bool decompress(std::span<const std::byte> chunk, std::span<std::byte> into, Compression compression) {
  if (compression == Compression::kLz4) {
    const auto size =
        ::LZ4_decompress_safe(reinterpret_cast<const char*>(chunk.data()), reinterpret_cast<char*>(into.data()),
                              static_cast<int>(chunk.size()), static_cast<int>(into.size()));
    return size >= 0 && static_cast<std::size_t>(size) == into.size();
  }
  return ::ZSTD_decompress(into.data(), into.size(), chunk.data(), chunk.size()) == into.size();
}

}  // namespace

void append_chunk(std::string& to, std::span<const std::byte> bytes, Compression compression) {
  const auto begin = to.size();
  to.resize(begin + kChunkHeader + bytes.size());
  auto* data = to.data() + begin + kChunkHeader;
  auto size = bytes.size() > 1 ? compress(bytes, data, bytes.size() - 1, compression) : 0;
  const bool stored = size == 0;
  if (stored) {
    size = bytes.size();
    std::memcpy(data, bytes.data(), size);
  }
  store(reinterpret_cast<std::byte*>(to.data() + begin),
        static_cast<std::uint32_t>(size) | (stored ? kStoredChunk : 0));
  to.resize(begin + kChunkHeader + size);
}

Result<std::size_t> chunk_size(std::uint32_t header, std::size_t holds) {
  const std::size_t size = header & ~kStoredChunk;
  const bool stored = (header & kStoredChunk) != 0;
  if (size == 0 || size > holds || (stored && size != holds)) {
    return protocol_error(fmt::format("a chunk of {} bytes for {}", size, holds));
  }
  return size;
}

Result<> decode_chunk(std::span<const std::byte> chunk, bool stored, std::span<std::byte> into,
                      Compression compression) {
  if (stored && chunk.size() == into.size()) {
    std::memcpy(into.data(), chunk.data(), chunk.size());
    return {};
  }
  if (stored || !decompress(chunk, into, compression))
    return protocol_error("a compressed batch was damaged on the way");
  return {};
}

}  // namespace taas::data
