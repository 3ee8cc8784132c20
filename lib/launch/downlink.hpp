#pragma once

#include <memory>

#include "launch/coordinator_loop.hpp"
#include "net/link.hpp"

namespace taas::launch {

/// Lets an agent that has connected take part in the run.
void admit(std::unique_ptr<net::Link> link, CoordinatorLoop& run);

}  // namespace taas::launch
