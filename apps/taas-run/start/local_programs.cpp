#include "start/local_programs.hpp"

#include <fmt/format.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>

#include "base/environment/environment.hpp"
#include "base/files.hpp"
#include "plan/program/python_command.hpp"
#include "proc/spawn/python.hpp"

namespace taas {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDefaultPath = "/usr/local/bin:/usr/bin:/bin";
constexpr const char* kNoProgram = "/dev/null";
constexpr std::size_t kBeginning = 4096;

fs::path own_folder() { return fs::path(own_path()).parent_path(); }

bool is_executable_file(const fs::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

LocalPrograms::LocalPrograms(const std::map<std::string, std::string>& environment) {
  auto path = environment.find("PATH");
  path_ = path == environment.end() ? kDefaultPath : path->second;
  auto python = environment.find("PYTHON_EXEC");
  if (python != environment.end()) chosen_python_ = python->second;
  variables_ = assignments(environment);
}

plan::FileKind LocalPrograms::kind(const std::string& path) const {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return plan::FileKind::kMissing;
  if (S_ISDIR(status.st_mode)) return plan::FileKind::kDirectory;
  bool readable_device = plan::is_stream(path) || path == kNoProgram;
  if ((S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode)) && !readable_device) return plan::FileKind::kDevice;
  return ::access(path.c_str(), X_OK) == 0 ? plan::FileKind::kExecutable : plan::FileKind::kFile;
}

std::string LocalPrograms::beginning(const std::string& path) const {
  auto text = read_regular_file(path, kBeginning);
  return text ? std::move(*text) : std::string();
}

std::string LocalPrograms::find_in_path(const std::string& name) const { return taas::find_in_path(name, path_); }

/// Beside the launcher in a build folder, in libexec of an installation.
std::string LocalPrograms::find_shipped(const std::string& name) const {
  const auto& all = plan::kShippedPrograms;
  if (std::find(std::begin(all), std::end(all), name) == std::end(all)) return "";
  fs::path folder = own_folder();
  for (const auto& place : {folder / name, folder.parent_path() / "libexec" / "taas" / name}) {
    if (is_executable_file(place)) return place;
  }
  return "";
}

Result<std::string> LocalPrograms::find_python() const {
  auto python = taas::find_python(variables_, fs::path(called_path()).parent_path());
  if (!python.empty()) return python;
  auto missing = [](int system_errno, std::string why) {
    return Error{ErrorCode::kCannotExecute, system_errno, std::move(why)};
  };
  if (chosen_python_.empty()) {
    return missing(ENOENT, "no Python interpreter found; activate a virtual environment or set PYTHON_EXEC");
  }
  bool is_path = chosen_python_.find('/') != chosen_python_.npos;
  if (is_path && kind(chosen_python_) != plan::FileKind::kMissing) {
    return missing(EACCES, fmt::format("PYTHON_EXEC={}: not an executable file", chosen_python_));
  }
  return missing(ENOENT, fmt::format("PYTHON_EXEC={}: {}; set it to a Python interpreter, or unset it", chosen_python_,
                                     is_path ? "no such file" : "not in PATH"));
}

std::string LocalPrograms::remark_on(const std::string& python) const {
  return other_active_environment(variables_, python);
}

std::string own_path() {
  std::error_code unknown;
  return fs::read_symlink("/proc/self/exe", unknown);
}

std::string called_path() {
  const auto* called = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
  std::error_code unknown;
  if (called == nullptr || !fs::equivalent(called, own_path(), unknown)) return own_path();
  return fs::absolute(called, unknown).lexically_normal();
}

std::string python_part(const std::string& name) {
  fs::path prefix = own_folder().parent_path();
  std::error_code unknown;
  for (const auto& place : {prefix / "python", prefix / "lib" / "taas" / "python"}) {
    if (fs::is_directory(place / name, unknown)) return place / name;
  }
  return "";
}

std::string python_packages() { return fs::path(python_part("taas")).parent_path(); }

}  // namespace taas
