#pragma once

#include <map>
#include <string>

namespace taas::plan {

using SlurmEnvironment = std::map<std::string, std::string>;

/// As a batch script sees it: 4 nodes with 8 GPUs each.
inline SlurmEnvironment batch_script() {
  return {{"SLURM_JOB_ID", "17"},
          {"SLURM_JOB_NODELIST", "g[0-3]"},
          {"SLURM_TASKS_PER_NODE", "1(x4)"},
          {"SLURM_NODEID", "0"},
          {"SLURM_PROCID", "0"},
          {"SLURM_LOCALID", "0"},
          {"SLURM_GPUS_ON_NODE", "8"},
          {"SLURMD_NODENAME", "g0"},
          {"SLURM_TASK_PID", "4711"},
          {"CUDA_VISIBLE_DEVICES", "0"},
          {"SLURM_NNODES", "4"}};
}

/// As a task of `srun --ntasks-per-node=1` in that job sees it.
inline SlurmEnvironment task_of_step(int node_id) {
  auto environment = batch_script();
  auto id = std::to_string(node_id);
  environment["SLURM_STEP_ID"] = "0";
  environment["SLURM_STEP_NODELIST"] = "g[0-3]";
  environment["SLURM_STEP_TASKS_PER_NODE"] = "1(x4)";
  environment["SLURM_NODEID"] = environment["SLURM_PROCID"] = id;
  environment["SLURMD_NODENAME"] = "g" + id;
  return environment;
}

}  // namespace taas::plan
