#pragma once

#include "base/ids.hpp"

namespace taas::run {

using AgentId = Id<struct AgentTag>;  ///< one connection of one agent; never used twice in a run

}  // namespace taas::run
