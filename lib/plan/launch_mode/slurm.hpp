#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "plan/launch_mode/nodelist.hpp"

namespace taas::plan {

/// The part of a job that srun started and that this process is a task of.
struct SlurmStep {
  std::string id;
  std::vector<std::string> nodes;
  std::vector<int> tasks_on_node;  ///< by node
  int node_id = 0;                 ///< this task's place in `nodes`
  int local_id = 0;                ///< among the tasks of its node
  int proc_id = 0;                 ///< among all tasks
};

/// One component of a heterogeneous job.
struct SlurmGroup {
  std::string job_id;
  std::vector<std::string> nodes;
};

/// What the environment says about the job that this process is in.
struct SlurmJob {
  std::string id;
  std::vector<std::string> nodes;        ///< of the first group of a heterogeneous job
  std::vector<int> tasks_on_node;        ///< by node
  int gpus_on_node = 0;                  ///< of this node, or of each where they are even
  bool gpus_are_even = false;            ///< they were asked for by node: each has as many
  std::string this_node;                 ///< SLURM's name of the machine; empty outside of the job's nodes (salloc)
  std::vector<SlurmGroup> groups;        ///< empty unless the job is heterogeneous
  int restart_count = 0;                 ///< how often the job was requeued
  std::optional<std::int64_t> end_time;  ///< seconds since 1970
  std::optional<SlurmStep> step;         ///< absent in a batch script, and in the shells of salloc and srun --pty
  std::string shell_of;                  ///< the step of several tasks in whose shell this process is; empty: in none
};

/// Nothing outside of a job. Errors name the variable. `typed`: as Machine.
Result<std::optional<SlurmJob>> read_slurm(const std::map<std::string, std::string>& environment, bool typed = false);

}  // namespace taas::plan
