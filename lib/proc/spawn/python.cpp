#include "proc/spawn/python.hpp"

#include <sys/stat.h>
#include <unistd.h>

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
  auto virtual_environment = find_variable(environment, "VIRTUAL_ENV").value_or("");
  if (!virtual_environment.empty()) {
    auto python = find_in_path(std::string(virtual_environment) + "/bin/python", path);
    if (!python.empty()) return python;
  }
  if (auto python = environments_python(launcher_folder); !python.empty()) return python;
  auto python = find_in_path("python3", path);
  return python.empty() ? find_in_path("python", path) : python;
}

}  // namespace taas
