#include "frameworks/deepspeed.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "base/environment/environment.hpp"
#include "base/files.hpp"
#include "plan/environment/environment_file.hpp"

namespace taas::cli {
namespace {

Result<> set_variables_of(const std::filesystem::path& file, plan::Machine& machine) {
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(file, unknown)) return {};
  auto text = read_file(file.string());
  if (!text) return usage_error(fmt::format("--framework deepspeed: {}", text.error().message));
  auto variables = plan::parse_environment_file(*text);
  if (!variables) return usage_error(fmt::format("{}: {}", file.string(), variables.error().message));
  for (auto& [name, value] : *variables) machine.environment.insert_or_assign(name, std::move(value));
  return {};
}

}  // namespace

Result<> follow_deepspeed(plan::Options& options, plan::Machine& machine) {
  if (options.frameworks.framework != plan::Framework::kDeepSpeed) return {};
  auto name = value_of(machine.environment, "DS_ENV_FILE", ".deepspeed_env");
  for (const auto& folder : {value_of(machine.environment, "HOME", "."), std::string(".")}) {
    if (auto set = set_variables_of(std::filesystem::path(folder) / name, machine); !set) return set;
  }
  auto& arguments = options.program.arguments;
  arguments.insert(arguments.begin(), "--local_rank=${local_rank}");
  return {};
}

}  // namespace taas::cli
