#include "base/bytes.hpp"

#include <fmt/format.h>

namespace taas {
namespace {

struct Unit {
  std::int64_t bytes;
  const char* name;
};

Unit unit_of(std::uint64_t bytes) {
  const auto size = static_cast<std::int64_t>(bytes);
  if (size >= kGiB) return {kGiB, "GiB"};
  return size >= kMiB ? Unit{kMiB, "MiB"} : Unit{kKiB, "KiB"};
}

std::string count_in(const Unit& unit, std::uint64_t bytes) {
  const auto size = static_cast<std::int64_t>(bytes);
  if (unit.bytes < kGiB) return fmt::format("{}", size / unit.bytes);
  return fmt::format("{:.1f}", static_cast<double>(size) / static_cast<double>(unit.bytes));
}

}  // namespace

std::string size_in_words(std::uint64_t bytes) {
  const auto unit = unit_of(bytes);
  return fmt::format("{} {}", count_in(unit, bytes), unit.name);
}

std::string share_in_words(std::uint64_t part, std::uint64_t whole) {
  return fmt::format("{} of {}", count_in(unit_of(whole), part), size_in_words(whole));
}

}  // namespace taas
