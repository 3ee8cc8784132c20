#include "parse/abbreviation.hpp"

#include <algorithm>

namespace taas::cli {
namespace {

bool is_torchruns(const Flag* flag) {
  return flag->origin == Flag::Origin::kTorchrun || flag->origin == Flag::Origin::kTorchrunWithoutPet;
}

std::vector<const Flag*> flags_that_begin_with(std::string_view name) {
  std::string dashed(name);
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  std::vector<const Flag*> found;
  for (const auto& group : flag_groups()) {
    for (const auto& flag : group.flags) {
      if (flag.origin != Flag::Origin::kInternal && flag.name.starts_with(dashed)) found.push_back(&flag);
    }
  }
  return found;
}

/// "-t=3" is "-t3": the first letter whose option has a value ends the letters.
std::string without_equals(std::string letters) {
  for (std::size_t i = 1; i + 1 < letters.size(); ++i) {
    const auto* flag = find_flag(letters[i]);
    if (flag == nullptr || !flag->takes_value()) continue;
    if (letters[i + 1] == '=') letters.erase(i + 1, 1);
    break;
  }
  return letters;
}

}  // namespace

std::vector<const Flag*> flags_meant_by(std::string_view name) {
  if (const auto* flag = find_flag(name)) return {flag};
  bool is_mixed = name.find('-') != name.npos && name.find('_') != name.npos;
  if (name.empty() || is_mixed) return {};
  auto found = flags_that_begin_with(name);
  if (std::any_of(found.begin(), found.end(), is_torchruns)) {
    std::erase_if(found, [](const Flag* flag) { return !is_torchruns(flag); });
  }
  return found;
}

std::string spelled_out(const std::string& argument) {
  if (!argument.starts_with("--")) return without_equals(argument);
  auto equals = std::min(argument.find('='), argument.size());
  auto meant = flags_meant_by(std::string_view(argument).substr(2, equals - 2));
  return meant.size() == 1 ? "--" + std::string(meant.front()->name) + argument.substr(equals) : argument;
}

}  // namespace taas::cli
