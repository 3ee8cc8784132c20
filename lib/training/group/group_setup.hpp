#pragma once

#include <c10/core/Device.h>

#include "training/group/process_group_state.hpp"

namespace taas {

inline constexpr const char* kGlooName = "gloo";
inline constexpr const char* kNcclName = "nccl";

/// The GPU of this rank.
c10::Device gpu_of(const Environment& environment);
/// Makes it the one that is meant where no index is given.
void use_device(c10::Device gpu);

/// Connects the ranks of `state`, by the backend that it names, through its store, and fills in device and group.
/// Throws CommunicationError.
void set_up(ProcessGroupState& state);

}  // namespace taas
