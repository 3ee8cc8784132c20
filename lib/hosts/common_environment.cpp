#include "hosts/common_environment.hpp"

#include <algorithm>
#include <set>
#include <string_view>

namespace taas::hosts {
namespace {

/// Set by the launcher, but the same in every generation of the same size; libraries read them when they are loaded.
constexpr std::string_view kCommon[] = {"OMP_NUM_THREADS", "PYTHONHASHSEED", "PYTHONPATH", "TORCH_FR_BUFFER_SIZE",
                                        "TORCH_NCCL_ASYNC_ERROR_HANDLING", "TORCH_NCCL_DUMP_ON_TIMEOUT",
                                        "TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC"};

std::string name_of(const std::string& variable) { return variable.substr(0, variable.find('=')); }

bool in_all(const std::string& variable, const std::vector<std::set<std::string>>& others) {
  return std::all_of(others.begin(), others.end(), [&](const auto& other) { return other.contains(variable); });
}

}  // namespace

CommonEnvironment common_environment(const std::vector<std::vector<std::string>>& environments,
                                     const std::vector<std::string>& set_by_launcher) {
  CommonEnvironment common;
  std::set<std::string> own(set_by_launcher.begin(), set_by_launcher.end());
  for (auto name : kCommon) own.erase(std::string(name));
  std::vector<std::set<std::string>> all;
  for (const auto& environment : environments) all.emplace_back(environment.begin(), environment.end());
  if (environments.empty()) return common;
  for (const auto& environment : environments) {
    for (const auto& variable : environment) {
      if (!in_all(variable, all)) own.insert(name_of(variable));
    }
  }
  for (const auto& variable : environments.front()) {
    if (!own.contains(name_of(variable))) common.variables.push_back(variable);
  }
  common.per_rank.assign(own.begin(), own.end());
  return common;
}

}  // namespace taas::hosts
