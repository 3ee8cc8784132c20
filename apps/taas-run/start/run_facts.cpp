#include "start/run_facts.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>  // program_invocation_name
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string_view>

#include "base/environment/environment.hpp"
#include "base/files.hpp"
#include "base/shell.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "plan/environment/rank_environment.hpp"
#include "plan/program/python_command.hpp"
#include "start/local_programs.hpp"

namespace taas::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostOfFile = 4 << 20;  // of packed-refs; the others are short

std::string text_of(const fs::path& path) {
  auto text = read_regular_file(path, kMostOfFile);
  return text ? std::move(*text) : std::string();
}

/// What stands behind a line's first word and `=`, without quotes: "version = 3.11.2", "__version__ = '2.11.0'".
std::string setting(const std::string& text, std::string_view name) {
  for (auto line : split(text, '\n')) {
    if (!line.starts_with(name)) continue;
    auto rest = trim(line.substr(name.size()));
    if (rest.starts_with('=')) return std::string(trim(rest.substr(1), " \t\r'\""));
  }
  return {};
}

bool is_commit(std::string_view text) {
  return text.size() >= 40 && text.find_first_not_of("0123456789abcdef") == text.npos;
}

/// `own` is a work tree's folder, `common` that of the repository: one and the same but for `git worktree`.
std::string commit_of(const fs::path& own, const fs::path& common) {
  constexpr std::string_view kReference = "ref: ";
  const auto text = text_of(own / "HEAD");
  const auto head = trim(text);
  if (!head.starts_with(kReference)) return std::string(head);
  const auto name = head.substr(kReference.size());
  for (const auto& folder : {own, common}) {
    if (auto loose = text_of(folder / name); !loose.empty()) return std::string(trim(loose));
  }
  const auto packed = text_of(common / "packed-refs");
  for (auto line : split(packed, '\n')) {
    auto blank = line.find(' ');
    if (blank != line.npos && line.substr(blank + 1) == name) return std::string(line.substr(0, blank));
  }
  return {};
}

/// gitrepository-layout(5).
std::string git_commit(fs::path folder) {
  std::error_code unknown;
  fs::path git;
  while (!fs::exists(git = folder / ".git", unknown)) {
    if (folder == folder.parent_path()) return {};
    folder = folder.parent_path();
  }
  constexpr std::string_view kElsewhere = "gitdir: ";
  if (const auto text = text_of(git); text.starts_with(kElsewhere)) {
    git = folder / trim(std::string_view(text).substr(kElsewhere.size()));
  }
  const auto common = text_of(git / "commondir");
  auto commit = commit_of(git, common.empty() ? git : git / trim(common));
  return is_commit(commit) ? commit : std::string();
}

/// An interpreter, and where its packages are.
class InstalledPython {
 public:
  InstalledPython(const std::string& python, const Environment& environment) : environment_(environment) {
    std::error_code unknown;
    const auto file = fs::canonical(python, unknown);
    base_ = file.parent_path().parent_path();
    prefix_ = fs::absolute(python, unknown).parent_path().parent_path();
    name_ = file.filename();
    settings_ = text_of(prefix_ / "pyvenv.cfg");
  }

  /// "3.11.2", or "3.11" where nothing says more; empty: it is no CPython whose file has the usual name.
  [[nodiscard]] std::string version() const {
    constexpr std::string_view kName = "python";
    if (!name_.starts_with(kName)) return {};
    const auto minor = name_.substr(kName.size());
    constexpr std::string_view kDefine = "#define PY_VERSION ";
    const auto header = text_of(base_ / "include" / name_ / "patchlevel.h");
    for (auto line : split(header, '\n')) {
      if (line.starts_with(kDefine)) return std::string(trim(line.substr(kDefine.size()), " \t\r\""));
    }
    for (auto name : {"version_info", "version"}) {
      if (auto said = setting(settings_, name); said.starts_with(minor + ".")) return said;
    }
    return minor;
  }

  [[nodiscard]] std::string torch() const {
    for (const auto& folder : folders()) {
      auto version = setting(text_of(folder / "torch" / "version.py"), "__version__");
      if (!version.empty()) return version;
    }
    return {};
  }

 private:
  /// In the order of sys.path.
  [[nodiscard]] std::vector<fs::path> folders() const {
    std::vector<fs::path> found;
    for (auto entry : split(value_of(environment_, "PYTHONPATH"), ':')) found.emplace_back(entry);
    for (const auto* library : {"lib", "lib64"}) add_site(prefix_ / library / name_ / "site-packages", found);
    if (!settings_.empty() && setting(settings_, "include-system-site-packages") != "true") return found;
    found.push_back(fs::path(value_of(environment_, "HOME")) / ".local" / "lib" / name_ / "site-packages");
    for (const auto& site : {base_ / "local" / "lib" / name_ / "dist-packages", base_ / "lib" / name_ / "site-packages",
                             base_ / "lib64" / name_ / "site-packages", base_ / "lib" / "python3" / "dist-packages"}) {
      add_site(site, found);
    }
    return found;
  }

  /// And what its .pth files name.
  static void add_site(const fs::path& site, std::vector<fs::path>& found) {
    found.push_back(site);
    std::error_code unknown;
    for (const auto& entry : fs::directory_iterator(site, unknown)) {
      if (entry.path().extension() != ".pth") continue;
      const auto text = text_of(entry.path());
      for (auto line : split(text, '\n')) {
        line = trim(line);
        if (!line.empty() && !line.starts_with('#') && !line.starts_with("import ")) found.push_back(site / line);
      }
    }
  }

  const Environment& environment_;
  fs::path prefix_;
  fs::path base_;
  std::string name_;
  std::string settings_;
};

/// Of the program; empty: it is none of Python's, or nobody knows which.
std::string python_of(const Launching& launching) {
  const auto& command = launching.program.command;
  const bool known = launching.program.python || plan::parse_python_command(command);
  if (!command.empty()) return known ? command.front() : std::string();
  if (!plan::is_python(launching.plan.options.program)) return {};
  auto python = LocalPrograms(launching.machine.environment).find_python();
  return python ? *python : std::string();
}

std::string now() {
  const auto time = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&time, &local);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S%z}", local);
}

}  // namespace

run::RunStarted run_started(const Launching& launching) {
  const auto& environment = launching.machine.environment;
  std::error_code unknown;
  run::RunStarted started;
  started.command = as_typed(program_invocation_name);
  if (!launching.arguments.empty()) started.command += " " + as_typed(launching.arguments);
  const auto folder = fs::current_path(unknown);
  started.folder = folder;
  started.time = now();
  started.host = launching.machine.hostname;
  started.user = value_of(environment, "USER", value_of(environment, "LOGNAME", fmt::format("uid {}", ::geteuid())));
  started.taas_run = kLauncherVersion;
  if (auto python = python_of(launching); !python.empty()) {
    const InstalledPython installed(python, environment);
    started.python = installed.version();
    started.torch = installed.torch();
  }
  const auto& program = launching.plan.options.program;
  started.commit = git_commit(program.module ? folder : (folder / program.program).lexically_normal().parent_path());
  return started;
}

}  // namespace taas::cli
