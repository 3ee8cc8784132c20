#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "plan/options/options.hpp"

namespace taas::plan {

enum class FileKind { kMissing, kDirectory, kDevice, kFile, kExecutable };

/// Programs that come with taas-run where libtaas is built, which belongs to one release of torch.
inline constexpr std::string_view kShippedPrograms[] = {"train", "auto_mode", "collectives_tour", "sampler_tour"};

/// What resolving a program asks of the world. The launcher has the real one, tests a table.
class ProgramFinder {
 public:
  ProgramFinder() = default;
  ProgramFinder(const ProgramFinder&) = delete;
  ProgramFinder& operator=(const ProgramFinder&) = delete;
  virtual ~ProgramFinder() = default;

  virtual FileKind kind(const std::string& path) const = 0;
  /// The first bytes of a regular file; empty where there is none, or nobody may read it.
  virtual std::string beginning(const std::string& path) const = 0;
  /// The first executable of this name in PATH; empty when there is none.
  virtual std::string find_in_path(const std::string& name) const = 0;
  /// Path of a program that comes with taas-run; empty when there is none of this name, or this installation lacks it.
  virtual std::string find_shipped(const std::string& name) const = 0;
  /// The Python interpreter: $PYTHON_EXEC, the active virtual environment's, PATH's; an error says which is missing.
  virtual Result<std::string> find_python() const = 0;
  /// What the user should know of the choice of that interpreter; empty where it is what anybody expects.
  virtual std::string remark_on(const std::string& python) const = 0;
};

/// What every rank executes.
struct ResolvedProgram {
  std::vector<std::string> command;
  std::vector<std::string> notices;  ///< one line each, where a name could have meant something else
  bool python = false;               ///< command begins with the interpreter and -u
};

/// What a data worker of a Python program executes: the package's worker, under the same interpreter.
std::vector<std::string> data_worker_command(const ResolvedProgram& program);

/// Finds out what PROGRAM is. A .py file, a module and a file that is not executable are given to Python (`python -u`,
/// as torchrun does); an executable is run as it is. A name without a slash is looked for among the programs shipped
/// with taas-run, then in the working directory, then in PATH. A folder with a __main__.py is given to Python too. What
/// cannot be found or executed is an error before anything starts (ErrorCode::kCannotExecute), and so is a file that is
/// not executable and does not look like Python.
Result<ResolvedProgram> resolve_program(const ProgramOptions& options, const ProgramFinder& finder);

/// The same for a whole run: data workers belong to programs of Python, so that another one with --cpus is an error.
Result<ResolvedProgram> resolve_program(const Options& options, const ProgramFinder& finder);

/// A program that comes through a descriptor of the launcher (/dev/stdin) can be read once.
Result<> check_streamed_program(const ProgramOptions& options, int ranks, bool is_here);

}  // namespace taas::plan
