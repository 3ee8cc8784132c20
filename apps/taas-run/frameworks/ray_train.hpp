#pragma once

#include <string>

#include "plan/options/options.hpp"
#include "plan/program/program.hpp"

namespace taas::cli {

/// One line where several ranks would run a program of Ray Train, whose Trainer starts workers of its own; empty
/// otherwise, and where the user wants no hints. At the start: such ranks can wait for each other for ever.
std::string note_on_ray_train(const plan::ResolvedProgram& program, const plan::Machine& machine, int world_size);

}  // namespace taas::cli
