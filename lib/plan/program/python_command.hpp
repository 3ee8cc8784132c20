#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace taas::plan {

/// What a command that begins with a Python interpreter runs.
struct PythonCommand {
  enum class Kind { kScript, kModule, kText };
  Kind kind = Kind::kScript;
  std::size_t options = 0;    ///< words before the program: the interpreter and its options, without -m and -c
  std::string program;        ///< the script's path, the module's name, or the program itself
  std::string argument = {};  ///< the first one of a module
};

/// A descriptor of whoever opens it. What is read of these is gone for whoever reads next, and it is the rank that has
/// to.
bool is_stream(std::string_view path);

/// Nothing when it is another program, when Python would read its standard input or another
/// descriptor, or when an option is not known.
std::optional<PythonCommand> parse_python_command(const std::vector<std::string>& command);

}  // namespace taas::plan
