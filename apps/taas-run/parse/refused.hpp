#pragma once

#include <optional>
#include <string_view>

#include "base/error.hpp"

namespace taas::cli {

/// The error for an option that a user may well try and that is not available; `given` is how the user spelled it, or
/// the variable that it came from. By name with its dashes, in either spelling; one with a single dash may have its
/// value behind it ("-n2").
std::optional<Error> refusal(std::string_view option, std::string_view given);

}  // namespace taas::cli
