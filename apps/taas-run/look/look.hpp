#pragma once

#include <string>
#include <vector>

#include "base/environment/environment.hpp"
#include "base/error.hpp"

namespace taas::cli {

/// `taas-run look [RUN] [--rank N] [--json] [--watch]`, without its first word: asks a run of this user's on this
/// machine what it is at. Returns the exit code; an error means that there is no such run, or that it does not answer.
Result<int> look(const std::vector<std::string>& arguments, const Environment& environment);

/// `taas-run top [RUN] [--json] [--once]`, without its first word: the same question, answered by a line a rank.
Result<int> top(const std::vector<std::string>& arguments, const Environment& environment);

}  // namespace taas::cli
