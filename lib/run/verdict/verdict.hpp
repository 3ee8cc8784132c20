#pragma once

#include "run/events/generation.hpp"
#include "run/events/policy.hpp"

namespace taas::run {

/// The judgement over a generation in which something failed. Candidates are the failures that the launcher did not
/// cause by stopping, in the order in which their causes were seen: the first line of a fatal error where there is one,
/// the exit otherwise, and a lost node's last sign of life. A rank that only lost a peer is to blame only when there is
/// nobody else.
Verdict judge_failure(const GenerationRecord& generation, const Policy& policy);

/// What a rank that failed says of others: that they did not come in time, or were gone.
enum class OfOthers { kNothing, kLate, kGone };
OfOthers tells_of_others(const RankRecord& record);

/// What ranks did once they were told to stop for it is their own way to end.
Verdict judge_departure(const NodeLeaves& leaving);

/// The user stopped the run: nobody is to blame, but what a rank had raised before that comes first.
Verdict judge_stop(const GenerationRecord& generation, const Policy& policy, int signal, Instant at);

/// Training ended well.
Verdict judge_success(const GenerationRecord& generation, Instant at);

/// There were not enough nodes for a generation.
Verdict judge_missing_nodes(Generation generation, const GatherFailed& event);

/// Training ended well, but what it wrote is not on disk.
Verdict judge_output(Verdict verdict, const std::string& error);

}  // namespace taas::run
