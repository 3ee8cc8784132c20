#pragma once

#include <map>
#include <string>
#include <vector>

#include "plan/environment/rank_environment.hpp"

namespace taas::plan {

/// What a data worker's environment needs that is known only when the run starts.
struct DataWorkerPlace {
  int worker = 0;               ///< TAAS_DATA_WORKER: its place in the list of all workers
  std::string listen;           ///< TAAS_DATA_LISTEN: the descriptors that it inherits
  std::string data_plan;        ///< TAAS_DATA_PLAN
  std::string events;           ///< TAAS_EVENTS
  std::string log_folder = {};  ///< TAAS_LOG_DIR, where the user wants a log
};

/// The variables set for one data worker, over the environment of `machine`, which is its own. It is no rank: nothing
/// of a process group is set.
std::vector<Variable> data_worker_environment(const LaunchSettings& settings, const Machine& machine,
                                              const DataWorkerPlace& place);

/// A launcher that was itself started by a rank or a data worker: what that was told is not for others.
void forget_data_delivery(std::map<std::string, std::string>& environment);

}  // namespace taas::plan
