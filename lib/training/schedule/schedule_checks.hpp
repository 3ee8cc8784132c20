#pragma once

#include <cstddef>

#include "taas/lr_scheduler.hpp"

namespace taas {

/// Throws InvalidArgument, which names the option, where a schedule cannot work for an optimizer of so many groups.
void check_schedule(const LRSchedule& schedule, std::size_t groups);

}  // namespace taas
