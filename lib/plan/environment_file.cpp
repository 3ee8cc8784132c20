#include "plan/environment_file.hpp"

#include <fmt/format.h>

#include "plan/numbers.hpp"

namespace taas::plan {
namespace {

constexpr std::string_view kBlanks = " \t\r";

std::string_view trim(std::string_view text) {
  auto first = text.find_first_not_of(kBlanks);
  return first == text.npos ? std::string_view() : text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

}  // namespace

Result<std::vector<std::pair<std::string, std::string>>> parse_environment_file(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> variables;
  int number = 0;
  for (auto line : split(text, '\n')) {
    ++number;
    line = trim(line);
    if (line.empty() || line.front() == '#') continue;
    auto equals = line.find('=');
    if (equals == line.npos || equals == 0) return usage_error(fmt::format("line {} is not NAME=value", number));
    variables.emplace_back(line.substr(0, equals), line.substr(equals + 1));
  }
  return variables;
}

}  // namespace taas::plan
