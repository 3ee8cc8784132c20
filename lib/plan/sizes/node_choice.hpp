#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "plan/sizes/node_pool.hpp"
#include "plan/sizes/size_request.hpp"

namespace taas::plan {

/// How many ranks each of the pool's first nodes gets; the most nodes of a range.
Result<std::vector<int>> choose(const SizeRequest& request, const NodePool& pool, int spares);

/// How many ranks a node gets when a total is divided, as long as there are enough.
int capacity(const NodeKind& node, const SizeRequest& request);

/// "<wish>, and job 17 has 4 nodes".
Error too_few_nodes(const NodePool& pool, const std::string& wish);

}  // namespace taas::plan
