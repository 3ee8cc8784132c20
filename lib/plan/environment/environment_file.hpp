#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace taas::plan {

/// The variables of a file such as .deepspeed_env: NAME=value on each line, the value as it stands there. Empty lines
/// and those that begin with # are left out. The error names the line's number.
Result<std::vector<std::pair<std::string, std::string>>> parse_environment_file(std::string_view text);

}  // namespace taas::plan
