#include "store/joining.hpp"

#include <algorithm>
#include <charconv>

namespace taas::store {

namespace {

constexpr std::string_view kDefaultGroup = "/default_pg/";
constexpr std::string_view kJoined = "taas/joined/";  // rendezvous.py of the package `taas`
constexpr auto kSlashes = 7;                          // "/default_pg/0//cpu//0/3"

std::optional<int> read_number(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

std::optional<Rank> last_number(std::string_view key) {
  const auto number = read_number(key.substr(key.rfind('/') + 1));
  if (!number) return std::nullopt;
  return Rank{*number};
}

}  // namespace

std::optional<Rank> joined_rank(std::string_view key) {
  if (key.starts_with(kJoined)) return last_number(key);
  if (!key.starts_with(kDefaultGroup) || std::ranges::count(key, '/') != kSlashes) return std::nullopt;
  return last_number(key);
}

}  // namespace taas::store
