#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <numeric>
#include <utility>

namespace taas {
namespace {

constexpr std::size_t kLongestWord = 40;  // no name is longer

/// Insertions, deletions, replacements and swaps of neighbours that turn one text into the other.
std::size_t distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> before, last, row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    before = std::exchange(last, row);
    row[0] = i + 1;
    for (std::size_t j = 0; j < to.size(); ++j) {
      row[j + 1] = std::min({last[j] + (from[i] == to[j] ? 0 : 1), row[j] + 1, last[j + 1] + 1});
      const bool swapped = i > 0 && j > 0 && from[i] == to[j - 1] && from[i - 1] == to[j];
      if (swapped) row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
    }
  }
  return row.back();
}

}  // namespace

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

std::string_view nearest_word(std::string_view mistyped, std::span<const std::string_view> words) {
  if (mistyped.size() < 2 || mistyped.size() > kLongestWord) return {};
  std::string_view nearest;
  auto least = std::max<std::size_t>(1, mistyped.size() / 3) + 1;
  for (auto word : words) {
    const auto far = distance(mistyped, word);
    if (far >= least) continue;
    least = far;
    nearest = word;
  }
  return nearest;
}

}  // namespace taas
