#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"

namespace taas::run {

/// "SIGTERM"; "signal 63" for one without a name.
std::string signal_name(int signal);

/// "rank 3", "ranks 5, 7 (node 1)", "ranks 1 (node 0), 5, 7 (node 1)": nodes are named only when there are several.
std::string name_ranks(const std::vector<Rank>& ranks, const std::vector<NodeIndex>& node_of_rank);

/// At most `limit` bytes, whole UTF-8 sequences, "..." at the end of what was cut.
std::string shorten(std::string_view text, std::size_t limit);

}  // namespace taas::run
