#include "frameworks/accelerate.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "base/environment/environment.hpp"
#include "plan/program/python_command.hpp"
#include "plan/program/python_sources.hpp"

namespace taas::cli {
namespace {

namespace fs = std::filesystem;

/// Where `accelerate config` writes to: accelerate/commands/config/config_args.py.
fs::path find_default_config(const Environment& environment) {
  auto caches = value_of(environment, "XDG_CACHE_HOME", value_of(environment, "HOME") + "/.cache");
  auto folder = fs::path(value_of(environment, "HF_HOME", caches + "/huggingface")) / "accelerate";
  std::error_code unknown;
  for (const auto* name : {"default_config.yaml", "default_config.json"}) {
    if (fs::is_regular_file(folder / name, unknown)) return folder / name;
  }
  return {};
}

bool says_itself(const Environment& environment) {
  auto first = environment.lower_bound("ACCELERATE_");
  return first != environment.end() && first->first.starts_with("ACCELERATE_");
}

}  // namespace

std::string note_on_accelerate(const plan::ResolvedProgram& program, const plan::Machine& machine) {
  auto config = find_default_config(machine.environment);
  if (config.empty() || says_itself(machine.environment)) return {};
  auto command = plan::parse_python_command(program.command);
  if (!command || !plan::read_program(*command, plan::read_source).accelerates) return {};
  return fmt::format("{} is read by accelerate launch alone: what it says is ACCELERATE_* in the environment here",
                     config.string());
}

}  // namespace taas::cli
