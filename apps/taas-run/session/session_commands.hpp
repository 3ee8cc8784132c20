#pragma once

#include <string>
#include <vector>

#include "base/environment/environment.hpp"
#include "base/error.hpp"
#include "plan/options/options.hpp"

namespace taas::cli {

/// `taas-run up [OPTIONS]`: makes a session in the background, and returns when it is ready. `arguments`: what follows
/// the word.
Result<int> up(const std::vector<std::string>& arguments, const plan::Machine& machine);

/// `taas-run down [NAME]`.
Result<int> down(const std::vector<std::string>& arguments, const Environment& environment);

/// `taas-run sessions`.
Result<int> sessions(const std::vector<std::string>& arguments, const Environment& environment);

}  // namespace taas::cli
