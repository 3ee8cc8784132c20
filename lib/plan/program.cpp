#include "plan/program.hpp"

#include <fmt/format.h>

#include <string_view>

namespace taas::plan {
namespace {

bool has_slash(const std::string& name) { return name.find('/') != name.npos; }

std::vector<std::string> with_arguments(std::vector<std::string> command, const ProgramOptions& options) {
  command.insert(command.end(), options.arguments.begin(), options.arguments.end());
  return command;
}

Result<ResolvedProgram> run_with_python(const ProgramOptions& options, const ProgramFinder& finder) {
  auto python = finder.find_python();
  if (python.empty()) {
    return usage_error(fmt::format("{}: no Python interpreter found; activate a virtual environment or set PYTHON_EXEC",
                                   options.program));
  }
  std::vector<std::string> command{python, "-u"};
  if (options.module) command.emplace_back("-m");
  command.push_back(options.program);
  return ResolvedProgram{with_arguments(std::move(command), options), {}, true};
}

Result<ResolvedProgram> run_script(const ProgramOptions& options, const ProgramFinder& finder) {
  switch (finder.kind(options.program)) {
    case FileKind::kMissing:
      return usage_error(fmt::format("{}: no such file", options.program));
    case FileKind::kDirectory:
      return usage_error(fmt::format("{}: a directory, not a program", options.program));
    default:
      return run_with_python(options, finder);
  }
}

ResolvedProgram run_as_it_is(std::string path, const ProgramOptions& options) {
  return {with_arguments({std::move(path)}, options), {}, false};
}

/// --no-python hands the file to the kernel: what it says about permissions and formats is the run's own failure.
Result<ResolvedProgram> run_without_python(const ProgramOptions& options, const ProgramFinder& finder) {
  const auto& name = options.program;
  if (!has_slash(name)) {
    for (auto path : {finder.find_shipped(name), finder.find_in_path(name)}) {
      if (!path.empty()) return run_as_it_is(std::move(path), options);
    }
    return usage_error(fmt::format("{0}: not in PATH; a file in this folder is ./{0}", name));
  }
  auto kind = finder.kind(name);
  if (kind == FileKind::kMissing) return usage_error(fmt::format("{}: no such file", name));
  if (kind == FileKind::kDirectory) return usage_error(fmt::format("{}: a directory, not a program", name));
  return run_as_it_is(name, options);
}

Result<ResolvedProgram> run_by_name(const ProgramOptions& options, const ProgramFinder& finder) {
  const auto& name = options.program;
  auto here = finder.kind(name);
  if (auto shipped = finder.find_shipped(name); !shipped.empty()) {
    auto resolved = run_as_it_is(std::move(shipped), options);
    if (here == FileKind::kFile || here == FileKind::kExecutable) {
      resolved.notices.push_back(fmt::format("{0} is the program shipped with taas-run; ./{0} is the file here", name));
    }
    return resolved;
  }
  if (here == FileKind::kFile) return run_with_python(options, finder);
  if (here == FileKind::kExecutable) return run_as_it_is("./" + name, options);
  if (auto path = finder.find_in_path(name); !path.empty()) return run_as_it_is(std::move(path), options);
  if (here == FileKind::kDirectory) return usage_error(fmt::format("{}: a directory, not a program", name));
  return usage_error(fmt::format("{}: neither a file here, nor a program shipped with taas-run, nor in PATH", name));
}

}  // namespace

std::vector<std::string> data_worker_command(const ResolvedProgram& program) {
  if (!program.python) return program.command;
  return {program.command.front(), "-u", "-m", "taas.worker"};
}

Result<ResolvedProgram> resolve_program(const ProgramOptions& options, const ProgramFinder& finder) {
  if (options.program.empty()) return usage_error("the program's name is empty");
  if (options.script) return run_script(options, finder);
  if (options.module && options.no_python) return usage_error("-m and --no-python exclude each other");
  if (options.module) return run_with_python(options, finder);
  if (options.no_python) return run_without_python(options, finder);
  if (options.program.ends_with(".py")) return run_script(options, finder);
  if (!has_slash(options.program)) return run_by_name(options, finder);
  if (finder.kind(options.program) == FileKind::kExecutable) return run_as_it_is(options.program, options);
  return run_script(options, finder);
}

}  // namespace taas::plan
