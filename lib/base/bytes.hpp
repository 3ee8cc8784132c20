#pragma once

#include <cstdint>
#include <string>

namespace taas {

inline constexpr std::int64_t kKiB = 1024;
inline constexpr std::int64_t kMiB = 1024 * kKiB;
inline constexpr std::int64_t kGiB = 1024 * kMiB;

/// "1.5 GiB", "64 MiB", "12 KiB": a size in the largest unit that it fills.
std::string size_in_words(std::uint64_t bytes);

/// "1.2 of 4.0 GiB": a part, in the unit of the whole.
std::string share_in_words(std::uint64_t part, std::uint64_t whole);

}  // namespace taas
