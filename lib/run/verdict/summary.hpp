#pragma once

#include <string>
#include <vector>

#include "run/events/policy.hpp"
#include "run/verdict/culprit.hpp"

namespace taas::run {

/// "rank 3 raised ValueError: bad shape": what the culprit, a rank, did. One line of a length that can be read.
std::string summarize(const Candidate& culprit, Cause cause, const GenerationRecord& generation, const Policy& policy);

/// "ranks 3, 5"; of many ranks their number alone.
std::string name_some(const std::vector<Rank>& ranks, const Policy& policy);

/// "rank 1 raised ValueError: bad shape and has not ended: waits for thread "writer"".
std::string describe(const RankLingers& lingering, const Policy& policy);

/// "ranks 0, 2, 3 ended well 30 s ago; rank 1 has not ended".
std::string describe_stragglers(const GenerationRecord& generation, const Policy& policy, Duration since);

/// "rank 1 had raised ValueError: bad shape and not ended when the run was stopped by SIGINT". It is lingering.
std::string summarize_stop(int signal, Rank rank, const GenerationRecord& generation, const Policy& policy);

/// "node 2 (hostb) was lost: no sign of life for 2.5 s".
std::string describe(const NodeLost& lost);

/// "node 2 (hostb) leaves the run: it was told to stop by SIGTERM".
std::string describe(const NodeLeaves& leaving);

}  // namespace taas::run
