#include "training/data/data_run.hpp"

#include <algorithm>
#include <mutex>

#include "training/backend/environment.hpp"
#include "training/data/data_events.hpp"

namespace taas {
namespace {

data::ClientOptions client_options(const DataPlan& plan) {
  data::ClientOptions options{.run_id = plan.run_id,
                              .key = plan.key,
                              .encryption = plan.encryption,
                              .compression = plan.compression,
                              .budget_bytes = plan.buffer_bytes,
                              .schedule = {}};
  options.schedule.first = read_environment(process_variable).rank;
  return options;
}

}  // namespace

std::shared_ptr<DataRun> DataRun::of_process() {
  static std::mutex mutex;
  static std::weak_ptr<DataRun> shared;
  auto path = process_variable("TAAS_DATA_PLAN");
  if (!path || path->empty()) return nullptr;
  const std::lock_guard lock(mutex);
  auto run = shared.lock();
  if (!run) shared = run = std::make_shared<DataRun>(*path);
  return run;
}

DataRun::DataRun(const std::string& path) : watched_(path) {
  if (plan().workers.empty()) return;
  client_.emplace(client_options(plan()));
  client_->set_workers(plan().workers);
}

std::string DataRun::worker_name(data::WorkerIndex index) const {
  auto place = static_cast<std::size_t>(index);
  bool named = index >= 0 && place < plan().workers.size() && !plan().workers[place].name.empty();
  return named ? plan().workers[place].name : "data worker " + std::to_string(index);
}

bool DataRun::prepares(const std::string& loader) const {
  const auto& named = plan().loaders;
  return std::find(named.begin(), named.end(), loader) != named.end();
}

std::size_t DataRun::window(std::size_t largest) const {
  constexpr std::size_t kOfEach = 4;
  constexpr std::size_t kMost = 1024;
  auto least = kOfEach * std::max<std::size_t>(1, plan().workers.size());
  return largest == 0 ? least : std::max(least, std::min(kMost, plan().buffer_bytes / largest));
}

void DataRun::tend() {
  if (!client_) return;
  if (watched_.has_changed()) client_->set_workers(plan().workers);
  for (const auto& line : client_->take_remarks()) remark_on_data(line);
}

}  // namespace taas
