#pragma once

#include <ATen/core/ivalue.h>

#include "taas/process_group.hpp"

namespace taas {

/// Where torch's random numbers are on each rank of `group`, of the CPU and of the rank's GPU, for
/// Checkpoint::random: {"cpu": [state, …], "cuda": […]}, as Python's get_rng_state() has them. A collective.
c10::IValue random_state(const ProcessGroup& group);
/// Of this process alone.
c10::IValue random_state();

/// Random numbers go on from there, on each rank. False where the state is of another number of ranks, or of other
/// devices: they stay as they are then. Throws CheckpointError for something else.
bool load_random_state(const ProcessGroup& group, const c10::IValue& state);
bool load_random_state(const c10::IValue& state);

}  // namespace taas
