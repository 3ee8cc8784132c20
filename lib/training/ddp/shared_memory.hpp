#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <memory>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "taas/process_group.hpp"
#include "training/sums/shared_sums.hpp"

namespace taas {

/// Memory for the sums of a group whose ranks are on one machine and see each other's processes; null, on all ranks,
/// where any of them is elsewhere or does not want it (TAAS_SHARED_MEMORY=0). A collective.
std::shared_ptr<SharedSums> share_sums(const ProcessGroup& group, std::chrono::milliseconds timeout);

/// The group that a reducer uses: with such memory where it can be had, else that of `group` itself. A collective.
c10::intrusive_ptr<c10d::ProcessGroup> with_shared_memory(const ProcessGroup& group);

}  // namespace taas
