#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "node/process/rank_source.hpp"

namespace taas::node {

/// What these complete environments of the ranks of one node have in common, for an interpreter that all of them are
/// forked from: neither what differs between ranks, nor what `set_by_launcher` names and the next generation may have
/// another value of. The order is that of the first.
CommonEnvironment common_environment(const std::vector<std::vector<std::string>>& environments,
                                     const std::vector<std::string>& set_by_launcher);

}  // namespace taas::node
