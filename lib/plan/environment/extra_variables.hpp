#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/ids.hpp"
#include "plan/options/framework_options.hpp"

namespace taas::plan {

/// NAME=value, as a user writes it for some ranks. Refused are what is no variable, and names whose values are the
/// launcher's own: ranks that disagree about the world do not find each other.
Result<std::pair<std::string, std::string>> read_extra_variable(std::string_view text);

/// The same without its parts, for checks of the command line.
Result<> check_extra_variable(std::string_view text);

/// What --env, and then --rank0-env or --other-ranks-env, set for this rank: of one name the last one counts.
std::vector<std::pair<std::string, std::string>> extra_variables(const FrameworkOptions& options, Rank rank);

}  // namespace taas::plan
