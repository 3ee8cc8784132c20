#include "plan/environment/extra_variables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>

#include "base/environment/environment.hpp"

namespace taas::plan {
namespace {

// What rank_environment() always sets; with the prefixes that are its own.
constexpr std::string_view kOwnNames[] = {
    "CROSS_RANK", "CROSS_SIZE",       "GROUP_RANK",  "GROUP_WORLD_SIZE", "LOCAL_RANK",
    "LOCAL_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",      "NODE_RANK",
    "RANK",       "ROLE_NAME",        "ROLE_RANK",   "ROLE_WORLD_SIZE",  "WORLD_SIZE"};
constexpr std::string_view kOwnPrefixes[] = {"TAAS_", "TORCHELASTIC_"};

bool is_own(std::string_view name) {
  return std::find(std::begin(kOwnNames), std::end(kOwnNames), name) != std::end(kOwnNames) ||
         std::any_of(std::begin(kOwnPrefixes), std::end(kOwnPrefixes),
                     [name](std::string_view prefix) { return name.starts_with(prefix); });
}

bool is_variable_name(std::string_view text) {
  auto belongs = [](unsigned char letter) { return std::isalnum(letter) != 0 || letter == '_'; };
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) == 0 &&
         std::all_of(text.begin(), text.end(), belongs);
}

}  // namespace

Result<std::pair<std::string, std::string>> read_extra_variable(std::string_view text) {
  auto variable = split_assignment(text);
  if (!variable || !is_variable_name(variable->first)) {
    return usage_error("not NAME=value, such as WANDB_MODE=disabled");
  }
  if (is_own(variable->first)) {
    return usage_error(fmt::format("{} is what taas-run tells each rank itself", variable->first));
  }
  return std::pair(std::string(variable->first), std::string(variable->second));
}

Result<> check_extra_variable(std::string_view text) {
  auto variable = read_extra_variable(text);
  if (!variable) return variable.error();
  return {};
}

std::vector<std::pair<std::string, std::string>> extra_variables(const FrameworkOptions& options, Rank rank) {
  std::vector<std::pair<std::string, std::string>> variables;
  const auto& own = rank.value == 0 ? options.rank0_env : options.other_ranks_env;
  for (const auto* texts : {&options.env, &own}) {
    for (const auto& text : *texts) {
      if (auto variable = read_extra_variable(text)) variables.push_back(std::move(*variable));
    }
  }
  return variables;
}

}  // namespace taas::plan
