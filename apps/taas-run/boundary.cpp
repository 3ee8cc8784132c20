#include "boundary.hpp"

#include <fmt/format.h>

#include <string_view>

#include "flags.hpp"
#include "refused.hpp"
#include "suggestion.hpp"

namespace taas::cli {
namespace {

Error unknown_option(std::string_view argument, std::string_view name) {
  if (auto why = why_refused(name)) return usage_error(fmt::format("{} {}", argument, *why));
  if (auto nearest = nearest_flag(name); !nearest.empty()) {
    return usage_error(fmt::format("{}: no such option; did you mean {}?", argument, nearest));
  }
  return usage_error(fmt::format("{}: no such option; taas-run --help lists them", argument));
}

/// Whether the option in this argument has its value in the next one.
Result<bool> wants_next(const std::string& argument) {
  std::string_view text(argument);
  if (text.starts_with("--")) {
    auto name = text.substr(2, text.find('=') - 2);
    const auto* flag = find_flag(name);
    if (flag == nullptr) return unknown_option(text.substr(0, text.find('=')), name);
    return flag->takes_value() && text.find('=') == text.npos;
  }
  for (std::size_t i = 1; i < text.size(); ++i) {  // -qv is -q -v, and -t3 is -t 3
    const auto* flag = find_flag(text[i]);
    if (flag == nullptr) return unknown_option(text, text.substr(1));
    if (flag->takes_value()) return i + 1 == text.size();
  }
  return false;
}

}  // namespace

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
