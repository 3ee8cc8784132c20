#include "parse/boundary.hpp"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "flags/flags.hpp"
#include "parse/abbreviation.hpp"
#include "parse/refused.hpp"
#include "parse/suggestion.hpp"

namespace taas::cli {
namespace {

Error unknown_option(std::string_view argument, std::string_view name) {
  if (auto why = why_refused(name)) return usage_error(fmt::format("{} {}", argument, *why));
  if (auto nearest = nearest_flag(name); !nearest.empty()) {
    return usage_error(fmt::format("{}: no such option; did you mean {}?", argument, nearest));
  }
  return usage_error(fmt::format("{}: no such option; taas-run --help lists them", argument));
}

Error ambiguous_option(std::string_view argument, const std::vector<const Flag*>& meant) {
  std::string names;
  for (const auto* flag : meant) names += fmt::format("{}--{}", names.empty() ? "" : ", ", flag->name);
  return usage_error(fmt::format("{}: is short for more than one option: {}", argument, names));
}

/// An option that is refused is never taken for the abbreviation of another.
Result<const Flag*> find_long_option(std::string_view argument) {
  auto name = argument.substr(2);
  auto meant = why_refused(name) ? std::vector<const Flag*>() : flags_meant_by(name);
  if (meant.empty()) return unknown_option(argument, name);
  if (meant.size() > 1) return ambiguous_option(argument, meant);
  return meant.front();
}

}  // namespace

Result<bool> wants_next(const std::string& argument) {
  std::string_view text(argument);
  if (text.starts_with("--")) {
    auto flag = find_long_option(text.substr(0, text.find('=')));
    if (!flag) return flag.error();
    return (*flag)->takes_value() && text.find('=') == text.npos;
  }
  for (std::size_t i = 1; i < text.size(); ++i) {  // -qv is -q -v, and -t3 is -t 3
    const auto* flag = find_flag(text[i]);
    if (flag == nullptr) {
      const bool counts = text.size() > 2 && text.find_first_not_of("0123456789", 2) == text.npos;  // -n2
      return unknown_option(text, text.substr(1, counts ? 1 : text.npos));
    }
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
    if (!next) return next.error();
    if (*next && ++i == arguments.size()) return usage_error(fmt::format("{}: a value is missing", argument));
  }
  return Boundary{arguments.size(), arguments.size()};
}

}  // namespace taas::cli
