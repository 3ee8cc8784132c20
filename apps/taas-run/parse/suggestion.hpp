#pragma once

#include <string>
#include <string_view>

namespace taas::cli {

/// The option that a mistyped one most likely means, with its dashes; empty when none is near.
std::string nearest_flag(std::string_view name);

/// The same of kCommands: "taas-run devices".
std::string nearest_command(std::string_view word);

}  // namespace taas::cli
