#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace taas {

/// The first executable file of this name in a PATH-like list of directories (an empty entry is the working directory).
/// A name with a slash is only checked. Empty when there is none.
std::string find_in_path(std::string_view name, std::string_view path);

/// Value of a variable in a list of "NAME=value".
std::optional<std::string_view> find_variable(std::span<const std::string> environment, std::string_view name);

/// The interpreter for a Python program: $PYTHON_EXEC, else that of the active virtual environment, else that of the
/// virtual or conda environment whose bin is `launcher_folder`, else python3 or python in PATH. Empty when there is
/// none.
std::string find_python(std::span<const std::string> environment, const std::string& launcher_folder = "");

}  // namespace taas
