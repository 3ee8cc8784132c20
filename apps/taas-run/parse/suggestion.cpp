#include "parse/suggestion.hpp"

#include <algorithm>
#include <vector>

#include "base/text.hpp"
#include "flags/flags.hpp"

namespace taas::cli {

std::string nearest_flag(std::string_view name) {
  std::string dashed(name);
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  std::vector<std::string_view> names;
  for (const auto& group : flag_groups()) {
    for (const auto& flag : group.flags) {
      if (flag.origin == Flag::Origin::kInternal) continue;
      names.push_back(flag.name);
    }
  }
  auto nearest = nearest_word(dashed, names);
  const auto begins = [&dashed](std::string_view flag) { return dashed.size() >= 3 && flag.starts_with(dashed); };
  const auto whole = std::ranges::find_if(names, begins);  // other launchers take abbreviations
  if (nearest.empty() && whole != names.end()) nearest = *whole;
  return nearest.empty() ? std::string() : "--" + std::string(nearest);
}

}  // namespace taas::cli
