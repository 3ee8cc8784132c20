#pragma once

#include <string>

#include "parse/arguments.hpp"

namespace taas::cli {

/// Reads a config file: `flag-name = value` for each flag, in TOML. Errors begin with the line.
Result<Given> read_config(const std::string& text);

}  // namespace taas::cli
