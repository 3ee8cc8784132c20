#include "plan/environment/environment_file.hpp"

#include <fmt/format.h>

#include "base/text.hpp"

namespace taas::plan {

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
