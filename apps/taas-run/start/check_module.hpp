#pragma once

#include "base/error.hpp"
#include "plan/launch_mode/launch_mode.hpp"
#include "plan/options/options.hpp"
#include "plan/program/program.hpp"

namespace taas::cli {

/// Whether Python would find the module of -m on this machine, without importing anything (kCannotExecute). Where
/// Python gives no answer, it is taken to be there. Takes as long as Python's own start, so that it is for --dry-run.
Result<> check_module(const plan::ResolvedProgram& program, const plan::ProgramOptions& options,
                      const plan::Machine& machine);

}  // namespace taas::cli
