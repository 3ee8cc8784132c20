#include "start/check_module.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>

#include "base/text.hpp"
#include "system/command_output.hpp"

namespace taas::cli {
namespace {

constexpr auto kPatience = std::chrono::seconds(60);  // for a Python on a slow disk

constexpr int kMissing = 3;

/// Ends with kMissing after a line that says which part of the name there is not. A package's own code, which could do
/// anything, does not run: an empty module stands for it, since namespace packages look for those above them.
constexpr const char* kFind = R"(
import sys, types
sys.path.append(sys.argv[2])
def find(name, path):
    found = (finder.find_spec(name, path) for finder in sys.meta_path if hasattr(finder, "find_spec"))
    spec = next((spec for spec in found if spec is not None), None)
    if spec is None:
        print("\n" + name)
        sys.exit(3)
    return spec.submodule_search_locations
path = None
for part in sys.argv[1].split("."):
    name = part if path is None else name + "." + part
    path = find(name, path)
    if path is not None:
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = path
    elif name != sys.argv[1]:
        print("\n" + name + "." + sys.argv[1][len(name) + 1:])
        sys.exit(3)
if path is not None:
    find(name + ".__main__", path)
)";

}  // namespace

Result<> check_module(const plan::ResolvedProgram& program, const plan::ProgramOptions& options,
                      const plan::Machine& machine) {
  if (!options.module) return {};
  const auto& python = program.command.front();
  auto end =
      run_command({python, "-c", kFind, options.program, machine.python_packages}, kPatience, Complaints::kDropped);
  if (!end || end->exit_code != kMissing) return {};
  const auto said = trim(end->output);
  const auto name = said.substr(said.find_last_of('\n') + 1);  // whatever a start-up file has printed before
  return Error{
      ErrorCode::kCannotExecute, ENOENT,
      fmt::format("-m {}: there is no module {}, neither in this folder nor installed for {}: are the name and "
                  "the folder right?",
                  options.program, printable(name), python)};
}

}  // namespace taas::cli
