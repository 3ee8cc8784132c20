#include "start/run_facts.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>  // program_invocation_name
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

constexpr std::size_t kMostOfFile = 64 << 10;
constexpr std::size_t kMostOfReferences = 4 << 20;

std::string text_of(const fs::path& path, std::size_t most = kMostOfFile) {
  auto text = read_regular_file(path, most);
  return text ? std::move(*text) : std::string();
}

/// Anybody may have written that file; empty: it is no version.
std::string version_in(std::string_view text) {
  constexpr std::string_view kLetters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.+-_";
  const bool fine = text.size() <= 64 && text.find_first_not_of(kLetters) == text.npos;
  return fine ? std::string(text) : std::string();
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
  return (text.size() == 40 || text.size() == 64) && text.find_first_not_of("0123456789abcdef") == text.npos;
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
  const auto packed = text_of(common / "packed-refs", kMostOfReferences);
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

  /// "3.11.2", or "3.11" where nothing says more; empty: its file has not CPython's usual name.
  [[nodiscard]] std::string version() const {
    constexpr std::string_view kName = "python";
    if (!name_.starts_with(kName)) return {};
    const auto minor = name_.substr(kName.size());
    if (minor.find('.') == minor.npos) return {};  // a script that chooses one
    constexpr std::string_view kDefine = "#define PY_VERSION ";
    const auto header = text_of(base_ / "include" / name_ / "patchlevel.h");
    for (auto line : split(header, '\n')) {
      if (line.starts_with(kDefine)) return version_in(trim(line.substr(kDefine.size()), " \t\r\""));
    }
    for (auto name : {"version_info", "version"}) {
      if (auto said = setting(settings_, name); said.starts_with(minor + ".")) return version_in(said);
    }
    return version_in(minor);
  }

  /// As it is found by sys.path, whose later folders are not looked at then.
  [[nodiscard]] std::string torch(const fs::path& beside_program) const {
    if (auto version = torch_in(beside_program); !version.empty()) return version;
    for (auto entry : split(value_of(environment_, "PYTHONPATH"), ':')) {
      if (auto version = torch_in(entry); !version.empty()) return version;
    }
    for (const auto& site : sites()) {
      if (auto version = torch_of_site(site); !version.empty()) return version;
    }
    return {};
  }

 private:
  /// As Python's module site has them, and Debian's.
  [[nodiscard]] std::vector<fs::path> sites() const {
    std::vector<fs::path> found;
    const auto add = [&](const fs::path& prefix) {
      for (const auto* library : {"lib", "lib64"}) found.push_back(prefix / library / name_ / "site-packages");
    };
    if (!settings_.empty()) add(prefix_);
    if (!settings_.empty() && setting(settings_, "include-system-site-packages") != "true") return found;
    const auto home = value_of(environment_, "HOME");
    const auto own = value_of(environment_, "PYTHONUSERBASE", home.empty() ? "" : home + "/.local");
    const bool used = !own.empty() && value_of(environment_, "PYTHONNOUSERSITE").empty();
    if (used) found.push_back(fs::path(own) / "lib" / name_ / "site-packages");
    add(base_);
    found.push_back(base_ / "local" / "lib" / name_ / "dist-packages");
    found.push_back(base_ / "lib" / "python3" / "dist-packages");
    return found;
  }

  static std::string torch_in(const fs::path& folder) {
    if (folder.empty()) return {};
    return version_in(setting(text_of(folder / "torch" / "version.py"), "__version__"));
  }

  /// Also in the folders that its .pth files name.
  static std::string torch_of_site(const fs::path& site) {
    if (auto version = torch_in(site); !version.empty()) return version;
    std::error_code failed;
    fs::directory_iterator entry(site, failed);
    for (; !failed && entry != fs::directory_iterator(); entry.increment(failed)) {
      if (entry->path().extension() != ".pth") continue;
      const auto text = text_of(entry->path());
      for (auto line : split(text, '\n')) {
        line = trim(line);
        if (line.empty() || line.starts_with('#') || line.starts_with("import ")) continue;
        if (auto version = torch_in(site / line); !version.empty()) return version;
      }
    }
    return {};
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

/// That the program's file is in, links followed; of a module, or of what is found in PATH, the user's own.
fs::path folder_of_program(const Launching& launching, const fs::path& own) {
  const auto& options = launching.plan.options.program;
  std::string file = options.module ? "" : options.program;
  if (auto command = plan::parse_python_command(launching.program.command)) {
    file = command->kind == plan::PythonCommand::Kind::kScript ? command->program : "";
  }
  std::error_code unknown;
  auto path = fs::canonical(own / file, unknown);
  return file.empty() || unknown ? own : path.parent_path();
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
  const auto program = folder_of_program(launching, folder);
  if (auto python = python_of(launching); !python.empty()) {
    const InstalledPython installed(python, environment);
    started.python = installed.version();
    started.torch = installed.torch(program);
  }
  started.commit = git_commit(program);
  return started;
}

}  // namespace taas::cli
