#pragma once

#include <string>

#include "plan/options/options.hpp"
#include "plan/program/program.hpp"

namespace taas::cli {

/// A line about an option for sizes or nodes that stands behind a Python script whose text does not know it; empty:
/// there is none. The script gets it all the same.
std::string note_on_misplaced_option(const plan::ResolvedProgram& program, const plan::ProgramOptions& options);

}  // namespace taas::cli
