#pragma once

#include "base/error.hpp"
#include "plan/launch_mode/launch_mode.hpp"

namespace taas::plan {

/// How the ranks get onto nodes: what the flags say, in this order: --standalone, --hosts, torchrun's rendezvous, SLURM
/// (of which the program may be a task, or inside an allocation), else this machine. Flags that exclude each other are
/// errors that name both. The hosts' texts are read here; the token of Join only has to be there.
Result<LaunchMode> decide_launch_mode(const Options& options, const Machine& machine);

}  // namespace taas::plan
