#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/folders/held_folder.hpp"
#include "plan/options/data_options.hpp"

namespace taas::node {

/// A data worker as processes of this machine find it; without address and path: it is gone.
struct DataPlanWorker {
  std::string name;
  std::string address;
  std::uint16_t port = 0;
  std::string unix_path;  ///< of a worker on this machine
};

/// TAAS_DATA_PLAN: what ranks and data workers of one machine have to know of each other. docs/data-workers.md
struct DataPlan {
  std::string run_id;
  std::string key;  ///< 64 hexadecimal digits
  plan::DataOptions options;
  int world_size = 1;
  std::vector<DataPlanWorker> workers;
};

/// The file's text.
std::string print_data_plan(const DataPlan& plan);

/// Replaces the file by renaming, so that a reader finds the former one or the new one whole. For the owner's eyes
/// only.
Result<> write_data_plan(const HeldPath& file, const DataPlan& plan);

}  // namespace taas::node
