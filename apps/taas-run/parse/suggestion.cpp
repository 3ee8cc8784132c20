#include "parse/suggestion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <vector>

#include "flags/flags.hpp"
#include "flags/help_words.hpp"

namespace taas::cli {
namespace {

constexpr std::size_t kLongestName = 40;

/// Levenshtein distance: insertions, deletions and replacements that turn one text into the other.
std::size_t distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    auto diagonal = row[0]++;
    for (std::size_t j = 0; j < to.size(); ++j) {
      auto replaced = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest_flag(std::string_view name) {
  if (name.empty() || name.size() > kLongestName) return {};
  std::string dashed(name);
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  std::string_view nearest;
  auto least = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const auto& group : flag_groups()) {
    for (const auto& flag : group.flags) {
      if (flag.origin == Flag::Origin::kInternal) continue;
      bool beginning = dashed.size() >= 3 && flag.name.starts_with(dashed);  // other launchers take abbreviations
      auto far = beginning ? 1 : distance(dashed, flag.name);
      if (far >= least || far >= flag.name.size()) continue;
      least = far;
      nearest = flag.name;
    }
  }
  return nearest.empty() ? std::string() : "--" + std::string(nearest);
}

std::string nearest_command(std::string_view word) {
  if (word.size() > kLongestName) return {};
  auto found = std::ranges::find_if(
      kCommands, [&](const Command& command) { return distance(word, command.name) <= command.name.size() / 4; });
  return found == std::end(kCommands) ? std::string() : fmt::format("taas-run {}", found->name);
}

}  // namespace taas::cli
