#pragma once

#include <string>
#include <vector>

#include "base/ids.hpp"

namespace taas::plan {

/// The value of TF_CONFIG: every rank is a worker, the first one the chief, as TensorFlow has it where none is named.
/// `servers` are the addresses "host:port" of all ranks, in their order.
std::string tensorflow_config(const std::vector<std::string>& servers, Rank rank);

}  // namespace taas::plan
