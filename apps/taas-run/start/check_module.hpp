#pragma once

#include "base/error.hpp"
#include "plan/launch_mode/launch_mode.hpp"
#include "plan/options/options.hpp"
#include "plan/program/program.hpp"

namespace taas::cli {

/// Whether Python would find the module of -m, without importing anything (kCannotExecute). Takes Python's own start,
/// so that it is for --dry-run. Modules of other machines, and other programs, are taken to be there.
Result<> check_module(const plan::ResolvedProgram& program, const plan::ProgramOptions& options,
                      const plan::Machine& machine);

}  // namespace taas::cli
