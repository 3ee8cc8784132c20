#include "parse/boundary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "base/shell.hpp"
#include "flags/flags.hpp"
#include "parse/abbreviation.hpp"
#include "parse/refused.hpp"
#include "parse/suggestion.hpp"
#include "plan/program/program.hpp"

namespace taas::cli {
namespace {

constexpr std::string_view kOwnModules = "taas.";  // what notebooks run: options are for taas-run alone

Error unknown_option(std::string_view argument, std::string_view name) {
  if (auto nearest = nearest_flag(name); !nearest.empty()) {
    return usage_error_with_fix(fmt::format("{}: no such option", argument), fmt::format("did you mean {}?", nearest));
  }
  return usage_error_with_fix(fmt::format("{}: no such option", argument), "taas-run --help all lists them");
}

/// "--gpu" lacks a letter, "--rdzv" much more.
Error ambiguous_option(std::string_view argument, const std::vector<const Flag*>& meant) {
  std::string names;
  std::string_view whole;
  for (const auto* flag : meant) {
    names += fmt::format("{}--{}", names.empty() ? "" : ", ", flag->name);
    if (flag->name.size() + 2 == argument.size() + 1) whole = flag->name;
  }
  auto what = fmt::format("{}: is short for more than one option: {}", argument, names);
  return whole.empty() ? usage_error(what) : usage_error_with_fix(what, fmt::format("did you mean --{}?", whole));
}

/// An option that is refused is never taken for the abbreviation of another.
Result<const Flag*> find_long_option(std::string_view argument) {
  if (auto refused = refusal(argument, argument)) return std::move(*refused);
  auto meant = flags_meant_by(argument.substr(2));
  if (meant.empty()) return unknown_option(argument, argument.substr(2));
  if (meant.size() > 1) return ambiguous_option(argument, meant);
  return meant.front();
}

Error unknown_letters(std::string_view argument) {
  if (auto refused = refusal(argument, argument)) return std::move(*refused);
  return unknown_option(argument, argument.substr(1, argument.find('=') - 1));
}

/// Whether more is known of this option than that the launcher does not have it.
bool is_known(std::string_view option) {
  return refusal(option, option) || (option.starts_with("--") && !flags_meant_by(option.substr(2)).empty());
}

/// An option that the launcher does not have, in front of a program that may have it.
Error or_of_the_program(Error error, std::span<const std::string> arguments, std::size_t at) {
  const auto& argument = arguments[at];
  const auto option = std::string_view(argument).substr(0, argument.find('='));
  const auto rest = arguments.subspan(at + 1);
  const auto program = program_by_looks(rest);
  if (!program || is_known(option)) return error;
  const auto& name = rest[*program];
  if (name.starts_with(kOwnModules)) return error;
  std::vector<std::string> moved{name, argument};
  const bool has_value = *program > 0 && argument.find('=') == argument.npos && !rest.front().starts_with('-');
  if (has_value) moved.push_back(rest.front());
  if (*program > 0 && rest[*program - 1].starts_with("-m")) moved.insert(moved.begin(), "-m");
  const auto nearest = nearest_flag(option.substr(option.find_first_not_of('-')));
  auto fix = fmt::format("{}options of {} stand behind it: {}",
                         nearest.empty() ? "" : fmt::format("did you mean {}? ", nearest), name, type_for_shell(moved));
  return usage_error_with_fix(fmt::format("{}: no such option of taas-run", option), std::move(fix));
}

}  // namespace

std::optional<std::size_t> program_by_looks(std::span<const std::string> arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto& word = arguments[i];
    const bool named = i > 0 && (arguments[i - 1] == "-m" || arguments[i - 1] == "--module");
    const bool shipped = std::ranges::find(plan::kShippedPrograms, word) != std::end(plan::kShippedPrograms);
    if (!word.starts_with('-') && (word.ends_with(".py") || named || shipped)) return i;
  }
  return std::nullopt;
}

Result<bool> wants_next(const std::string& argument) {
  std::string_view text(argument);
  if (text.starts_with("--")) {
    auto flag = find_long_option(text.substr(0, text.find('=')));
    if (!flag) return flag.error();
    return (*flag)->takes_value() && text.find('=') == text.npos;
  }
  for (std::size_t i = 1; i < text.size(); ++i) {  // -qv is -q -v, and -t3 is -t 3
    const auto* flag = find_flag(text[i]);
    if (flag == nullptr) return unknown_letters(text);
    if (flag->takes_value()) return i + 1 == text.size();
  }
  return false;
}

Result<Boundary> find_program(std::span<const std::string> arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto& argument = arguments[i];
    if (argument == "--") return Boundary{i, i + 1};
    if (argument.size() < 2 || argument[0] != '-') return Boundary{i, i};
    auto next = wants_next(argument);
    if (!next) return or_of_the_program(next.error(), arguments, i);
    if (*next && ++i == arguments.size()) return usage_error(fmt::format("{}: a value is missing", argument));
  }
  return Boundary{arguments.size(), arguments.size()};
}

}  // namespace taas::cli
