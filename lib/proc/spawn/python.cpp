#include "proc/spawn/python.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace taas {
namespace {

bool is_executable_file(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

/// The interpreter of the virtual or conda environment whose bin this folder is.
std::string environments_python(const std::string& folder) {
  auto prefix = folder + "/..";
  auto has = [&prefix](const char* name) { return ::access((prefix + name).c_str(), F_OK) == 0; };
  auto python = folder + "/python";
  return (has("/pyvenv.cfg") || has("/conda-meta")) && is_executable_file(python) ? python : std::string();
}

bool has_entry(std::string_view path, const std::string& folder) {
  return (":" + std::string(path) + ":").find(":" + folder + ":") != std::string::npos;
}

}  // namespace

std::string find_in_path(std::string_view name, std::string_view path) {
  if (name.empty()) return {};
  if (name.find('/') != name.npos) return is_executable_file(std::string(name)) ? std::string(name) : std::string();
  for (;;) {
    auto end = path.find(':');
    auto directory = path.substr(0, end);
    auto candidate = std::string(directory.empty() ? "." : directory) + "/" + std::string(name);
    if (is_executable_file(candidate)) return candidate;
    if (end == path.npos) return {};
    path.remove_prefix(end + 1);
  }
}

std::optional<std::string_view> find_variable(std::span<const std::string> environment, std::string_view name) {
  for (std::string_view entry : environment) {
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=') {
      return entry.substr(name.size() + 1);
    }
  }
  return std::nullopt;
}

std::string find_python(std::span<const std::string> environment, const std::string& launcher_folder) {
  auto path = find_variable(environment, "PATH").value_or("/usr/local/bin:/usr/bin:/bin");
  auto chosen = find_variable(environment, "PYTHON_EXEC").value_or("");
  if (!chosen.empty()) return find_in_path(chosen, path);
  if (!has_entry(path, launcher_folder)) {
    if (auto python = environments_python(launcher_folder); !python.empty()) return python;
  }
  auto python = find_in_path("python3", path);
  return python.empty() ? find_in_path("python", path) : python;
}

std::string other_active_environment(std::span<const std::string> environment, const std::string& python) {
  namespace fs = std::filesystem;
  if (!find_variable(environment, "PYTHON_EXEC").value_or("").empty()) return {};
  std::string other;
  for (const auto* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    auto active = find_variable(environment, name).value_or("");
    if (active.empty()) continue;
    std::error_code unknown;
    if (fs::equivalent(fs::path(active) / "bin", fs::path(python).parent_path(), unknown)) return {};
    if (other.empty()) other = fmt::format("{} names {}", name, active);
  }
  if (other.empty()) return {};
  return fmt::format("{}, but the program runs with {}: PATH and PYTHON_EXEC choose the interpreter", other, python);
}

}  // namespace taas
