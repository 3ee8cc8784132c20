#pragma once

#include <string>

namespace taas {

/// Cores that this process may keep busy: its affinity mask, and no more than the CPU quota of its control groups,
/// rounded up. At least 1.
int usable_cores();

std::string hostname();

}  // namespace taas
