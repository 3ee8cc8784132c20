#pragma once

#include <string>

#include "run/events/policy.hpp"
#include "run/verdict/culprit.hpp"

namespace taas::run {

/// "rank 3 raised ValueError: bad shape": what the culprit, a rank, did. One line of a length that can be read.
std::string summarize(const Candidate& culprit, Cause cause, const GenerationRecord& generation, const Policy& policy);

/// "node 2 (hostb) was lost: no sign of life for 2.5 s".
std::string describe(const NodeLost& lost);

/// "node 2 (hostb) leaves the run: it was told to stop by SIGTERM".
std::string describe(const NodeLeaves& leaving);

}  // namespace taas::run
