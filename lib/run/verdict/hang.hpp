#pragma once

#include <optional>
#include <string>
#include <vector>

#include "run/events/generation.hpp"
#include "run/events/policy.hpp"

namespace taas::run {

/// Ranks that waited for each other in vain, as torch's flight records of all ranks show it.
struct Hang {
  std::vector<Rank> culprits;  ///< did not come, or came with something else
  std::string summary;  ///< "rank 2 did not come to all_reduce 16 (1 MB float32, train.py:31): ranks 0, 1 waited 8 s"
  std::vector<std::string> detail;  ///< where the culprits were last
};

/// Compares the ranks' flight records. Nothing when they show no difference, or there are none.
std::optional<Hang> find_hang(const GenerationRecord& generation, const Policy& policy);

}  // namespace taas::run
