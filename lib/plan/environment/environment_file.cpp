#include "plan/environment/environment_file.hpp"

#include <fmt/format.h>

#include "base/environment/environment.hpp"
#include "base/text.hpp"

namespace taas::plan {

Result<std::vector<std::pair<std::string, std::string>>> parse_environment_file(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> variables;
  int number = 0;
  for (auto line : split(text, '\n')) {
    ++number;
    line = trim(line);
    if (line.empty() || line.front() == '#') continue;
    auto variable = split_assignment(line);
    if (!variable) return usage_error(fmt::format("line {} is not NAME=value", number));
    variables.emplace_back(*variable);
  }
  return variables;
}

}  // namespace taas::plan
