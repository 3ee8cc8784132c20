#include "node/process/common_environment.hpp"

#include <set>
#include <string_view>
#include <unordered_set>

namespace taas::node {
namespace {

/// Set by the launcher, but the same in every generation of the same size; libraries read them when they are loaded.
constexpr std::string_view kCommon[] = {"ACCELERATE_USE_CPU",
                                        "OMP_NUM_THREADS",
                                        "PL_TRAINER_DEVICES",
                                        "PL_TRAINER_NUM_NODES",
                                        "PYTHONFAULTHANDLER",
                                        "PYTHONHASHSEED",
                                        "PYTHONPATH",
                                        "TORCH_FR_BUFFER_SIZE",
                                        "TORCH_NCCL_ASYNC_ERROR_HANDLING",
                                        "TORCH_NCCL_DUMP_ON_TIMEOUT",
                                        "TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC"};

std::string name_of(const std::string& variable) { return variable.substr(0, variable.find('=')); }

using Variables = std::unordered_set<std::string_view>;

/// Adds the names of variables of one environment that the other does not have, or not with this value.
void add_differing(const std::vector<std::string>& one, const Variables& other, std::set<std::string>& names) {
  for (const auto& variable : one) {
    if (!other.contains(variable)) names.insert(name_of(variable));
  }
}

}  // namespace

CommonEnvironment common_environment(const std::vector<std::vector<std::string>>& environments,
                                     const std::vector<std::string>& set_by_launcher) {
  CommonEnvironment common;
  if (environments.empty()) return common;
  std::set<std::string> own(set_by_launcher.begin(), set_by_launcher.end());
  for (auto name : kCommon) own.erase(std::string(name));
  const auto& first = environments.front();
  const Variables of_first(first.begin(), first.end());
  for (const auto& environment : environments) {  // all are the same where each is the same as the first
    add_differing(environment, of_first, own);
    add_differing(first, Variables(environment.begin(), environment.end()), own);
  }
  for (const auto& variable : first) {
    if (!own.contains(name_of(variable))) common.variables.push_back(variable);
  }
  common.per_rank.assign(own.begin(), own.end());
  return common;
}

}  // namespace taas::node
