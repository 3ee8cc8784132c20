#include "parse/misplaced.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "base/text.hpp"
#include "plan/program/python_command.hpp"
#include "plan/program/source.hpp"

namespace taas::cli {
namespace {

// Without one of these another run begins than the one that was meant.
constexpr std::string_view kOptions[] = {"gpus",         "nproc_per_node", "nnodes",       "node_rank",
                                         "max_restarts", "rdzv_endpoint",  "rdzv_backend", "master_addr",
                                         "master_port",  "standalone"};

/// "nproc_per_node" of "--nproc-per-node=2"; empty: it is no option, or none of those above.
std::string misplaced(std::string_view argument) {
  if (!argument.starts_with("--")) return {};
  std::string name(argument.substr(2, argument.find('=') - 2));
  std::ranges::replace(name, '-', '_');
  return std::ranges::find(kOptions, name) == std::end(kOptions) ? std::string() : name;
}

}  // namespace

std::string note_on_misplaced_option(const plan::ResolvedProgram& program, const plan::ProgramOptions& options) {
  const auto& arguments = options.arguments;
  if (std::ranges::all_of(arguments, [](const auto& argument) { return misplaced(argument).empty(); })) return {};
  auto command = plan::parse_python_command(program.command);
  if (!command || command->kind != plan::PythonCommand::Kind::kScript) return {};
  auto text = plan::read_source(command->program);
  if (!text) return {};
  std::ranges::replace(*text, '-', '_');
  for (const auto& argument : arguments) {
    const auto name = misplaced(argument);
    if (name.empty() || contains(*text, name)) continue;
    return fmt::format("{} stands behind {} and is passed to it: options of taas-run stand before the program",
                       argument, options.program);
  }
  return {};
}

}  // namespace taas::cli
