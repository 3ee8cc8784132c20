#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "plan/launch_mode/host_list.hpp"
#include "plan/launch_mode/launch_mode.hpp"
#include "plan/options/options.hpp"

namespace taas::plan {

/// The machines whose data workers make batches.
struct DataMachines {
  int count = 0;                        ///< --cpus
  std::vector<Host> hosts;              ///< of --data-hosts, `count` of them, with the processes of each
  std::vector<std::string> group = {};  ///< nodes of a SLURM job's second component, `count` of them
  bool staged = false;                  ///< they are nodes of a SLURM job of their own, which starts first

  /// Names of machines with agents of their own; none: they are simulated here.
  [[nodiscard]] std::vector<std::string> names() const;
};

/// In a heterogeneous job the nodes of the second component make batches, and in a staged submission those of a job of
/// their own. Reads the options of data delivery, or says which of them cannot be meant. Without any: no machine.
Result<DataMachines> decide_data_machines(const DataOptions& options, const LaunchMode& mode,
                                          const std::optional<SlurmJob>& job = std::nullopt);

/// Data worker processes on each of `machines` that one machine with so many usable cores plays.
int simulated_data_workers(const DataOptions& options, int machines, int cores);

/// A line for the user when so many data workers of a Python program would take more than half of the machine's
/// available memory before they hold any data; empty: they would not.
std::string data_memory_warning(int workers, int cores, std::int64_t available_bytes);

/// "2 CPU machines, simulated here, with 4 workers each".
std::string describe(const DataMachines& machines, const DataOptions& options, int cores);

}  // namespace taas::plan
