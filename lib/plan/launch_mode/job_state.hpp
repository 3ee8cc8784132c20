#pragma once

#include <string>
#include <vector>

namespace taas::plan {

/// Where a job of SLURM is on its way.
enum class JobPhase {
  kUnknown,  ///< SLURM did not say
  kHeld,     ///< it waits for `scontrol release`
  kQueued,
  kRuns,
  kOver,
};

struct JobState {
  JobPhase phase = JobPhase::kUnknown;
  std::string name = {};  ///< SLURM's word for it: "CANCELLED"; "GONE" for a job that SLURM does not know any more
};

/// The command whose output read_job_state() reads.
std::vector<std::string> ask_job_state(const std::string& job_id);

/// By all lines that it printed, complaints included.
JobState read_job_state(const std::vector<std::string>& lines);

}  // namespace taas::plan
