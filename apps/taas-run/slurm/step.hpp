#pragma once

#include "base/error.hpp"
#include "plan/launch_mode/launch_mode.hpp"

namespace taas::cli {

/// Fails where the environment names a step of SLURM that is over: a terminal's or an editor's server that outlived its
/// job hands its variables on, and nobody would come. SLURM is asked only by a process that has no slurmstepd of the
/// step above it; where it does not answer, the environment is believed.
Result<> check_step(const plan::SlurmTask& task);

}  // namespace taas::cli
