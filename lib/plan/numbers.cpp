#include "plan/numbers.hpp"

#include <charconv>
#include <system_error>

namespace taas::plan {

std::optional<int> parse_integer(std::string_view text) {
  int value = 0;
  const char* end = text.data() + text.size();
  auto [stopped, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc() || stopped != end) return std::nullopt;
  return value;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (auto end = text.find(separator); end != text.npos; end = text.find(separator)) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.push_back(text);
  return parts;
}

}  // namespace taas::plan
