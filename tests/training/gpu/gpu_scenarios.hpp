#pragma once

#include <iostream>
#include <string>

#include "spawn_ranks.hpp"
#include "training/backend/nccl.hpp"

// What the programs share that run scenarios on GPUs.

namespace taas::test {

inline constexpr int kSkipped = 77;

/// 0, with a line that says so, where a program has to end with kSkipped.
inline int gpus_or_skip() {
  const int gpus = cuda_device_count();
  if (gpus == 0) std::cout << "skipped: no NVIDIA GPU that this build can use\n";
  return gpus;
}

/// Empty when all is well.
inline std::string problems_of(const char* scenario, const SpawnOptions& options) {
  const auto text = problems(spawn_ranks(TAAS_RANK_PROGRAM, scenario, options));
  return text.empty() ? "" : std::string(scenario) + ": " + text + "\n";
}

/// The exit code.
inline int end_with(const std::string& problems) {
  std::cout << problems;
  return problems.empty() ? 0 : 1;
}

}  // namespace taas::test
