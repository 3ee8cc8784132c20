#pragma once

#include "command/documents.hpp"
#include "plan/launch_plan.hpp"

namespace taas::cli {

/// What ranks on this machine can compute on: GPUs as the driver describes them, the CPU as /proc does, and what the
/// torch of the Python that programs would run with says to a tensor on each of them.
DevicesDocument find_devices(const plan::Machine& machine);

/// A table, and below it why there is no GPU, and which torch it was.
std::string as_text(const DevicesDocument& found);

}  // namespace taas::cli
