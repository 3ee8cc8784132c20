#pragma once

#include <string>

namespace taas::cli {

/// Sees to it that the job that this process is in goes back into SLURM's queue, once: asks for it, which ends the job,
/// or leaves it to SLURM, which does so by itself when the script of a preempted job ends, or to whoever has put it
/// back since this start (the number `restart_count`). Where it fails, one line says why.
void requeue(const std::string& job_id, int restart_count);

}  // namespace taas::cli
