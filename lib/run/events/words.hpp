#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"

namespace taas::run {

/// "SIGTERM"; "signal 63" for one without a name.
std::string signal_name(int signal);

/// All ranks are on the same one.
bool one_node(const std::vector<NodeIndex>& node_of_rank);

/// "node 2", or "node 2 (hostb)" when nodes have names.
std::string name_node(NodeIndex node, const std::vector<std::string>& node_names);

/// "node 2 (hostb), node 3 (hostc)"; of many nodes their number alone. Where a node's index is -1 its machine's name.
std::string name_nodes(const std::vector<NodeIndex>& nodes, const std::vector<std::string>& names);

/// "rank 3", "ranks 5, 7 (node 1)", "ranks 1 (node 0), 5, 7 (node 1)": nodes are named only when there are several.
/// With names of nodes: "ranks 1 on node 0 (hosta), 5, 7 on node 1 (hostb)".
std::string name_ranks(const std::vector<Rank>& ranks, const std::vector<NodeIndex>& node_of_rank,
                       const std::vector<std::string>& node_names = {});

/// At most `limit` bytes, whole UTF-8 sequences, "..." at the end of what was cut.
std::string shorten(std::string_view text, std::size_t limit);

}  // namespace taas::run
