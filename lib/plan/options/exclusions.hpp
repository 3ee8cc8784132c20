#pragma once

#include "base/error.hpp"
#include "plan/options/options.hpp"

namespace taas::plan {

/// Flags that cannot be meant together, whatever the environment is. The error names both.
Result<> check_exclusions(const Options& options);

/// Flags that need a job of SLURM: one that is submitted, or the one that this process is in.
Result<> check_job_flags(const Options& options, bool in_job);

}  // namespace taas::plan
