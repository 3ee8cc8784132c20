#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace taas::cli {

/// Why an option that a user may well try is not available, for "--preload <why>". By name without the dashes in front,
/// in either spelling.
std::optional<std::string_view> why_refused(std::string_view name);

/// Those of them that torchrun reads from a variable PET_<OPTION> as well.
std::span<const std::string_view> refused_variables();

}  // namespace taas::cli
