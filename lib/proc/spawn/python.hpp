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

/// The interpreter for a Python program: $PYTHON_EXEC, else that of the virtual or conda environment whose bin is
/// `launcher_folder`, unless PATH has that folder, else python3 or python in PATH, as a shell finds them. Empty when
/// there is none.
std::string find_python(std::span<const std::string> environment, const std::string& launcher_folder = "");

/// What to tell the user where $VIRTUAL_ENV, or else $CONDA_PREFIX, names another environment than the one that this
/// interpreter belongs to: either was left behind when PATH changed. Empty where they agree or are not set, and where
/// $PYTHON_EXEC has chosen.
std::string other_active_environment(std::span<const std::string> environment, const std::string& python);

}  // namespace taas
