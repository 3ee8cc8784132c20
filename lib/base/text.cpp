#include "base/text.hpp"

#include <fmt/format.h>

#include <cctype>

namespace taas {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (auto end = text.find(separator); end != text.npos; end = text.find(separator)) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.push_back(text);
  return parts;
}

std::string_view trim(std::string_view text, std::string_view blanks) {
  auto first = text.find_first_not_of(blanks);
  return first == text.npos ? std::string_view() : text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

std::string printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (letter == '\n') {
      shown += "\\n";
    } else if (letter == '\t') {
      shown += "\\t";
    } else if (byte < ' ' || byte == 0x7f) {
      shown += fmt::format("\\x{:02x}", byte);
    } else {
      shown += letter;
    }
  }
  return shown;
}

std::string plural(std::int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string snake_case(std::string_view name) {
  if (name.size() > 1 && name[0] == 'k' && std::isupper(static_cast<unsigned char>(name[1])) != 0)
    name.remove_prefix(1);
  std::string result;
  for (const char letter : name) {
    const bool upper = std::isupper(static_cast<unsigned char>(letter)) != 0;
    if (upper && !result.empty()) result += '_';
    result += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return result;
}

}  // namespace taas
