#pragma once

#include <string>
#include <vector>

#include "plan/program/python_command.hpp"
#include "plan/program/source.hpp"

namespace taas::plan {

/// What the text of a program tells of it, without running it.
struct ProgramText {
  bool known = false;                  ///< the program's own text was found
  bool trains = false;                 ///< it imports torch, or a package that does
  bool accelerates = false;            ///< it imports accelerate
  bool trains_by_ray = false;          ///< it imports ray.train
  std::string goes_first;              ///< what has to come before torch is imported, as a sentence
  std::vector<std::string> variables;  ///< that it sets or removes itself
  bool sets_others = false;            ///< and variables whose names its text does not have
};

/// Reads the program and, from one to the next, what it imports that lies beside it. A glance, no parser: a line counts
/// that begins with `import` or `from`, at whatever depth.
ProgramText read_program(const PythonCommand& command, const ReadSource& read);

}  // namespace taas::plan
