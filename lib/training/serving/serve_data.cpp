#include <ATen/Parallel.h>

#include <set>
#include <vector>

#include "taas/data.hpp"
#include "taas/error.hpp"
#include "training/backend/environment.hpp"
#include "training/serving/data_worker.hpp"

namespace taas {

bool serve_data(const std::vector<ServedLoader>& loaders) {
  for (const auto& [loader, sampler] : loaders) {
    if (loader.state_->num_workers == 0 || !sampler) continue;
    throw InvalidArgument("'" + loader.state_->name +
                          "' has an iterable dataset, which no sampler draws from: leave it out");
  }
  if (process_variable("TAAS_ROLE") != "data-worker") return false;
  std::set<std::string> names;
  std::vector<KnownLoader> known;
  for (const auto& [loader, sampler] : loaders) {
    const auto& name = loader.state_->name;
    if (!names.insert(name).second) throw InvalidArgument("two loaders are called '" + name + "'");
    known.push_back({loader.state_, sampler});
  }
  at::set_num_threads(1);
  serve_jobs(known);
  return true;
}

}  // namespace taas
