#include "plan/program/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <string_view>

#include "plan/program/python_command.hpp"
#include "plan/program/python_file.hpp"

namespace taas::plan {
namespace {

Error not_found(std::string message) { return {ErrorCode::kCannotExecute, ENOENT, std::move(message)}; }

Error not_executable(std::string_view name, std::string_view why, int system_errno = ENOEXEC) {
  return {ErrorCode::kCannotExecute, system_errno, fmt::format("{}: {}", name, why)};
}

Error no_such_file(const std::string& name) {
  constexpr std::string_view kWindows =
      " (its name ends in a carriage return: the job script has Windows line endings)";
  return not_found(fmt::format("{}: no such file{}", name, name.ends_with('\r') ? kWindows : ""));
}

bool has_slash(const std::string& name) { return name.find('/') != name.npos; }

std::vector<std::string> with_arguments(std::vector<std::string> command, const ProgramOptions& options) {
  command.insert(command.end(), options.arguments.begin(), options.arguments.end());
  return command;
}

Result<ResolvedProgram> run_with_python(const ProgramOptions& options, const ProgramFinder& finder) {
  auto python = finder.find_python();
  if (!python) return std::move(python).error().with(options.program);
  ResolvedProgram resolved{{}, {}, true};
  if (auto remark = finder.remark_on(*python); !remark.empty()) resolved.notices.push_back(std::move(remark));
  std::vector<std::string> command{std::move(*python), "-u"};
  if (options.module) command.emplace_back("-m");
  command.push_back(options.program);
  resolved.command = with_arguments(std::move(command), options);
  return resolved;
}

/// As `python FOLDER` does.
bool has_main(const std::string& folder, const ProgramFinder& finder) {
  auto kind = finder.kind(folder + "/__main__.py");
  return kind == FileKind::kFile || kind == FileKind::kExecutable;
}

Error is_directory(const std::string& name) {
  return not_executable(name, "a directory without a __main__.py, not a program", EISDIR);
}

Result<ResolvedProgram> run_script(const ProgramOptions& options, const ProgramFinder& finder) {
  const auto& name = options.program;
  auto kind = finder.kind(name);
  if (kind == FileKind::kMissing) return no_such_file(name);
  if (kind == FileKind::kDevice) return not_executable(name, "a device, not a program");
  if (kind == FileKind::kDirectory && !has_main(name, finder)) return is_directory(name);
  return run_with_python(options, finder);
}

/// A file that nobody called Python: it has to look like it.
Result<ResolvedProgram> run_as_python(const ProgramOptions& options, const ProgramFinder& finder) {
  auto why = why_not_python(options.program, finder.beginning(options.program));
  if (!why.empty()) return not_executable(options.program, why);
  return run_script(options, finder);
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
    return not_found(fmt::format("{0}: not in PATH; a file in this folder is ./{0}", name));
  }
  auto kind = finder.kind(name);
  if (kind == FileKind::kMissing) return no_such_file(name);
  if (kind == FileKind::kDirectory) return not_executable(name, "a directory, not a program", EISDIR);
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
  if (here == FileKind::kFile) return run_as_python(options, finder);
  if (here == FileKind::kExecutable) return run_as_it_is("./" + name, options);
  if (here == FileKind::kDirectory && has_main(name, finder)) return run_with_python(options, finder);
  if (auto path = finder.find_in_path(name); !path.empty()) return run_as_it_is(std::move(path), options);
  if (here == FileKind::kDirectory) return is_directory(name);
  if (std::find(std::begin(kShippedPrograms), std::end(kShippedPrograms), name) != std::end(kShippedPrograms)) {
    return not_found(
        fmt::format("{}: this installation of taas-run comes without it: ./scripts/quickstart in a clone "
                    "builds it with libtaas, for your torch; a wheel or .deb has no libtaas",
                    name));
  }
  return not_found(fmt::format("{}: neither a file here, nor a program shipped with taas-run, nor in PATH", name));
}

}  // namespace

std::vector<std::string> data_worker_command(const ResolvedProgram& program) {
  return {program.command.front(), "-u", "-m", "taas.worker"};
}

Result<ResolvedProgram> resolve_program(const ProgramOptions& options, const ProgramFinder& finder) {
  if (options.program.empty()) return usage_error("the program's name is empty");
  if (options.script) return run_script(options, finder);
  if (options.module && options.no_python) return usage_error("-m and --no-python exclude each other");
  if (options.module) return run_with_python(options, finder);
  if (options.no_python) return run_without_python(options, finder);
  if (options.program.ends_with(".py")) return run_script(options, finder);
  if (auto why = why_not_a_program(options.program);
      !why.empty() && finder.kind(options.program) != FileKind::kMissing) {
    return not_executable(options.program, why);
  }
  if (!has_slash(options.program)) return run_by_name(options, finder);
  if (finder.kind(options.program) == FileKind::kExecutable) return run_as_it_is(options.program, options);
  return run_as_python(options, finder);
}

Result<ResolvedProgram> resolve_program(const Options& options, const ProgramFinder& finder) {
  auto program = resolve_program(options.program, finder);
  const int cpus = options.data.cpus.value_or(0);
  if (!program || program->python || cpus == 0) return program;
  return usage_error(fmt::format(
      "--cpus {}: data workers make batches for Python programs, and {} is an executable: name its .py file "
      "or -m MODULE, or leave --cpus out",
      cpus, options.program.program));
}

Result<> check_streamed_program(const ProgramOptions& options, int ranks, bool is_here) {
  if (options.module || !is_stream(options.program) || (ranks == 1 && is_here)) return {};
  return usage_error(
      fmt::format("{}: a program that comes through a descriptor can be read by one rank on this machine "
                  "and no others; save it to a file",
                  options.program));
}

}  // namespace taas::plan
