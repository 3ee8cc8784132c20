#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "flags/flags.hpp"

namespace taas::cli {

/// The values of each flag that was given, by the flag's name in flags.hpp.
using Given = std::map<std::string_view, Values>;

/// Reads the launcher's own arguments: those before the program.
Result<Given> read_arguments(std::span<const std::string> arguments);

/// All flags by group, for a terminal of 80 columns.
std::string help_text();

}  // namespace taas::cli
