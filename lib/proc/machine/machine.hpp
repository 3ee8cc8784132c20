#pragma once

#include <string>
#include <vector>

namespace taas {

/// Numbers of logical processors, as sched_setaffinity() counts them.
using Processors = std::vector<int>;

/// The affinity mask of the calling thread, ascending; empty: the kernel does not say.
Processors usable_processors();

/// Cores that this process may keep busy: its affinity mask, and no more than the CPU quota of its control groups,
/// rounded up. At least 1.
int usable_cores();

std::string hostname();

}  // namespace taas
