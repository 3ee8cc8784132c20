#pragma once

#include <string>

#include "plan/options/options.hpp"
#include "plan/program/program.hpp"

namespace taas::cli {

/// One line where the program uses accelerate and `accelerate config` has left a file that only `accelerate launch`
/// reads; empty otherwise, and where ACCELERATE_* variables say what is wanted.
std::string note_on_accelerate(const plan::ResolvedProgram& program, const plan::Machine& machine);

}  // namespace taas::cli
