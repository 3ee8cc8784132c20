#include "plan/options/numbers.hpp"

#include <charconv>
#include <system_error>

#include "base/text.hpp"

namespace taas::plan {

std::optional<int> parse_integer(std::string_view text) {
  text = trim(text);
  int value = 0;
  const char* end = text.data() + text.size();
  auto [stopped, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc() || stopped != end) return std::nullopt;
  return value;
}

}  // namespace taas::plan
