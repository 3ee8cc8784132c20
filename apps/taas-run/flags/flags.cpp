#include "flags/flags.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.hpp"

namespace taas::cli {
namespace {

std::string with_underscores(std::string_view name) {
  std::string spelled(name);
  std::replace(spelled.begin(), spelled.end(), '-', '_');
  return spelled;
}

template <class Predicate>
const Flag* find(Predicate matches) {
  for (const auto& group : flag_groups()) {
    auto found = std::find_if(group.flags.begin(), group.flags.end(), matches);
    if (found != group.flags.end()) return &*found;
  }
  return nullptr;
}

}  // namespace

bool Flag::keeps_blanks() const {
  constexpr std::string_view kAnything[] = {"COMMAND", "DIR", "FILE", "NAME=VALUE", "PATH", "TEXT"};
  return std::ranges::find(kAnything, value) != std::end(kAnything);
}

std::vector<std::string_view> choices(const Flag& flag) {
  std::vector<std::string_view> words;
  for (auto word : split(flag.value, '|')) {
    if (!word.empty() && word[0] >= 'a' && word[0] <= 'z') words.push_back(word);
  }
  return words;
}

std::span<const FlagGroup> flag_groups() {
  static const std::array kGroups{size_flags(),    nodes_flags(),     slurm_flags(),      data_flags(),
                                  program_flags(), framework_flags(), rendezvous_flags(), supervision_flags(),
                                  output_flags(),  general_flags()};
  return kGroups;
}

const Flag* find_flag(std::string_view name) {
  return find([&](const Flag& flag) { return flag.name == name || with_underscores(flag.name) == name; });
}

const Flag* find_flag(char short_name) {
  return find([&](const Flag& flag) { return short_name != 0 && flag.short_name == short_name; });
}

std::string pet_variable(std::string_view flag) {
  auto name = fmt::format("PET_{}", flag);
  std::transform(name.begin(), name.end(), name.begin(), [](char letter) {
    if (letter == '-') return '_';
    return letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter;
  });
  return name;
}

}  // namespace taas::cli
