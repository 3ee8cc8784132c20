#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <variant>

#include "base/environment/environment.hpp"
#include "base/error.hpp"
#include "plan/options/options.hpp"

namespace taas::cli {

/// A text to print before leaving with success: the help or the version.
struct PrintAndExit {
  std::string text;
};

using ParseOutcome = std::variant<plan::Options, PrintAndExit>;
using FileReader = std::function<Result<std::string>(const std::string& path)>;

/// Reads a command line, without the launcher's own name. For each option the command line wins over PET_<OPTION>, that
/// over the file of --config, and that over what is built in. An error is one line for the user, exit code 2.
Result<ParseOutcome> parse(std::span<const std::string> arguments, const Environment& environment,
                           const FileReader& read_file);

}  // namespace taas::cli
