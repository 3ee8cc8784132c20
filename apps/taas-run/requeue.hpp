#pragma once

#include <string>

namespace taas::cli {

/// Puts the job that this process is in back into SLURM's queue. That ends the job; where it fails, one line says why.
void requeue(const std::string& job_id);

}  // namespace taas::cli
