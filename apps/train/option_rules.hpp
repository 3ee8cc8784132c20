#pragma once

#include <functional>
#include <string>

#include "options.hpp"

namespace taas::train {

/// Whether an option is on the command line, by its name ("--data").
using IsGiven = std::function<bool(const std::string&)>;

/// Throws InputError for options that do not go together.
void check_rules(const Options& options, const std::string& preset, const IsGiven& given);

/// Sets what is not on the command line as the preset and the model have it.
void apply_defaults(Options& options, const std::string& preset, const IsGiven& given);

}  // namespace taas::train
