#pragma once

#include "taas/process_group.hpp"

namespace taas {

/// The highest of the ranks that are candidates, on all ranks. A collective. One at least has to be a candidate.
int common_rank(const ProcessGroup& group, bool candidate);

/// The sum of the ranks' numbers. A collective.
int sum_over_ranks(const ProcessGroup& group, int number);

/// The same collective for a rank that does not want to know the sum: returns at once.
void add_over_ranks(const ProcessGroup& group, int number);

}  // namespace taas
