#include "start/check_module.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>

#include "base/text.hpp"
#include "system/command_output.hpp"

namespace taas::cli {
namespace {

constexpr auto kPatience = std::chrono::seconds(60);  // for a Python on a slow disk

/// Prints which part of the name is missing, or nothing. A package's own code, which could do anything, does not run.
constexpr const char* kFind = R"(
import sys
sys.path.append(sys.argv[2])
def find(name, path):
    found = (finder.find_spec(name, path) for finder in sys.meta_path if hasattr(finder, "find_spec"))
    return next((spec for spec in found if spec is not None), None)
parts = sys.argv[1].split(".")
path = None
for count in range(1, len(parts) + 1):
    name = ".".join(parts[:count])
    spec = find(name, path) if count == 1 or path is not None else None
    if spec is None:
        sys.exit(print(name))
    path = spec.submodule_search_locations
if path is not None and find(name + ".__main__", path) is None:
    print(name + ".__main__")
)";

}  // namespace

Result<> check_module(const plan::ResolvedProgram& program, const plan::ProgramOptions& options,
                      const plan::Machine& machine) {
  if (!options.module || program.command.empty()) return {};
  const auto& python = program.command.front();
  auto missing =
      output_of({python, "-c", kFind, options.program, machine.python_packages}, kPatience, Complaints::kDropped);
  if (!missing) return std::move(missing).error().with("-m " + options.program);
  auto name = trim(*missing);
  if (name.empty()) return {};
  return Error{
      ErrorCode::kCannotExecute, ENOENT,
      fmt::format("-m {}: there is no module {}, neither in this folder nor installed for {}: are the name and "
                  "the folder right?",
                  options.program, printable(name), python)};
}

}  // namespace taas::cli
