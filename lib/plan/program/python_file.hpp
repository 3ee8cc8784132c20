#pragma once

#include <string>
#include <string_view>

namespace taas::plan {

/// Why Python cannot run a file that is not executable, with the way out; empty where it can, or where only Python can
/// tell. `beginning` holds the file's first bytes. Archives and compiled modules are Python's to judge.
std::string why_not_python(const std::string& path, std::string_view beginning);

/// The same for files that are executable: some never run, whatever their permissions.
std::string why_not_a_program(const std::string& path);

}  // namespace taas::plan
