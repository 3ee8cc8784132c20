#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "plan/launch_plan.hpp"

namespace taas::plan {

/// Whether a text can be a value of -r or -t; the error says why not, without naming the flag.
Result<> check_stream_choice(std::string_view text);

/// Whether each local rank that -r, -t and the filter name is on some node.
Result<> check_local_ranks(const OutputOptions& options, int most_ranks_on_node);

/// What the console shows of every rank. Without flags: both streams of rank 0. -t adds the chosen streams of the
/// chosen local ranks of every node, -r takes streams off that were only shown by default, and a filter of local ranks
/// replaces "rank 0" by "these local ranks" and shows no others.
Result<std::vector<RankOutput>> decide_streams(const OutputOptions& options, const std::vector<RankPlace>& ranks);

}  // namespace taas::plan
