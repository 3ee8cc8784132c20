#pragma once

#include <c10/core/Device.h>

#include <memory>

#include "training/group/process_group_state.hpp"
#include "training/sums/shared_sums.hpp"

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

/// The ranks of a gloo group once more, whose all_reduce makes small sums by `sums`.
c10::intrusive_ptr<c10d::ProcessGroup> summing_by(const ProcessGroupState& state, std::shared_ptr<SharedSums> sums);

}  // namespace taas
