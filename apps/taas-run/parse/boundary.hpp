#pragma once

#include <span>
#include <string>

#include "base/error.hpp"

namespace taas::cli {

/// Where on a command line the launcher's options end.
struct Boundary {
  std::size_t options_end = 0;    ///< arguments before this one are the launcher's
  std::size_t program_begin = 0;  ///< from this one on they are the program's name and its own; a "--" lies between
};

/// Finds the program: the first argument that is neither an option nor the value of one. Nothing after it is looked at.
/// Unknown and refused options before it are errors, and so is a missing value.
Result<Boundary> find_program(std::span<const std::string> arguments);

/// Whether the option in this argument has its value in the next one.
Result<bool> wants_next(const std::string& argument);

}  // namespace taas::cli
