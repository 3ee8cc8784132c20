#pragma once

#include <string>

#include "plan/launch_plan.hpp"

namespace taas::cli {

/// `taas-run devices`: what ranks on this machine can compute on.
struct DevicesReport {
  std::string text;
  bool all_work = true;  ///< a tensor could be made on each, or there is no torch to try it with
};

/// GPUs as the driver describes them, the CPU as /proc does, and what the torch of the Python that programs would run
/// with says to a tensor on each of them.
DevicesReport report_devices(const plan::Machine& machine);

}  // namespace taas::cli
