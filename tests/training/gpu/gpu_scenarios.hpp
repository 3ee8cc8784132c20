#pragma once

#include <initializer_list>
#include <iostream>

#include "spawn_ranks.hpp"
#include "training/backend/backends.hpp"

// What the programs share that run scenarios on GPUs.

namespace taas::test {

inline constexpr int kSkipped = 77;

/// 0, with a line that says so, where a program has to end with kSkipped.
inline int gpus_or_skip() {
  const int gpus = cuda_device_count();
  if (gpus == 0) std::cout << "skipped: no NVIDIA GPU that this build can use\n";
  return gpus;
}

/// Each of them, and says which went well. The exit code.
inline int run_scenarios(std::initializer_list<const char*> scenarios, const SpawnOptions& options) {
  int code = 0;
  for (const char* scenario : scenarios) {
    const auto text = problems(spawn_ranks(TAAS_RANK_PROGRAM, scenario, options));
    if (!text.empty()) code = 1;
    std::cout << (text.empty() ? "ok: " : "FAILED: ") << scenario << ", " << options.world_size << " ranks\n" << text;
    std::cout.flush();
  }
  return code;
}

}  // namespace taas::test
