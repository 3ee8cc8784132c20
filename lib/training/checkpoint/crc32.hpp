#pragma once

#include <cstddef>
#include <cstdint>

namespace taas {

/// The CRC-32 of zip files (ISO 3309) of `size` bytes after bytes whose CRC is `before`.
std::uint32_t crc32(const void* bytes, std::size_t size, std::uint32_t before = 0);

/// Of bytes whose CRC is `first`, followed by `second_size` bytes whose CRC is `second`.
std::uint32_t combined_crc32(std::uint32_t first, std::uint32_t second, std::uint64_t second_size);

}  // namespace taas
