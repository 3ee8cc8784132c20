#include "plan/environment/data_environment.hpp"

#include <string_view>

#include "base/log/log_settings.hpp"

namespace taas::plan {
namespace {

/// A batch is a large block that is made and freed again and again: glibc's defaults map fresh, empty pages for it each
/// time, which costs several times as much as filling them.
constexpr std::pair<const char*, const char*> kDefaults[] = {
    {"MALLOC_MMAP_MAX_", "0"},
    {"MALLOC_TRIM_THRESHOLD_", "1099511627776"},
    {"MALLOC_TOP_PAD_", "67108864"},
    {"THP_MEM_ALLOC_ENABLE", "1"},
    {"OMP_NUM_THREADS", "1"},  // there is a worker for each core
    kHashSeed,
};

}  // namespace

void forget_data_delivery(std::map<std::string, std::string>& environment) {
  for (auto name :
       {"TAAS_ROLE", "TAAS_DATA_PLAN", "TAAS_DATA_LISTEN", "TAAS_DATA_WORKER", "TAAS_EVENTS", kSplit.first}) {
    environment.erase(name);
  }
}

std::vector<Variable> data_worker_environment(const LaunchSettings& settings, const Machine& machine,
                                              const DataWorkerPlace& place) {
  std::vector<Variable> variables{
      {"TAAS_ROLE", "data-worker"},       {"TAAS_DATA_WORKER", std::to_string(place.worker)},
      {"TAAS_DATA_LISTEN", place.listen}, {"TAAS_DATA_PLAN", place.data_plan},
      {"TAAS_EVENTS", place.events},      {"TAAS_RUN_ID", settings.run_id}};
  if (settings.options.data.split) variables.emplace_back(kSplit);
  if (auto path = python_path(settings.options.program, machine); !path.empty()) {
    variables.emplace_back("PYTHONPATH", std::move(path));
  }
  if (const auto& level = settings.options.output.log_level; !level.empty()) {
    variables.emplace_back(kLogVariable, level);
    variables.emplace_back(kLogFolderVariable, place.log_folder);
  }
  for (const auto& [name, value] : kDefaults) {
    if (!machine.environment.contains(name)) variables.emplace_back(name, value);
  }
  return variables;
}

}  // namespace taas::plan
