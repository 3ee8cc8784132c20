#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "plan/options/options.hpp"

namespace taas::cli {

/// `taas-run --in NAME …`: has the session start the launcher, stands for it in the terminal (its signals, its exit
/// code), and returns when it has ended; killed, it takes the run with it. Nothing: the session is of no use for this,
/// in a line on stderr, and the run starts without it. `typed`: the whole command line.
Result<std::optional<int>> run_in_session(const plan::Options& options, const std::vector<std::string>& typed,
                                          const plan::Machine& machine);

}  // namespace taas::cli
