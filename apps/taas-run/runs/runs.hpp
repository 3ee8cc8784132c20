#pragma once

#include <string>
#include <vector>

#include "base/environment/environment.hpp"
#include "base/error.hpp"

namespace taas::cli {

using RunsCommand = Result<int> (*)(const std::vector<std::string>& arguments, const Environment& environment);

/// A command about runs by its name: "runs", "show", "logs", "attach", "stop", "rerun", "diff", "clean"; null when
/// there is none. It takes what follows the name, and returns the exit code; an error is one of usage. A program of
/// such a name is called as ./runs.
RunsCommand find_runs_command(const std::string& name);

}  // namespace taas::cli
