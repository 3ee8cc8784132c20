#pragma once

#include <memory>

#include "hosts/run_loop.hpp"
#include "net/link.hpp"

namespace taas::hosts {

/// Lets an agent that has connected take part in the run.
void admit(std::unique_ptr<net::Link> link, RunLoop& run);

}  // namespace taas::hosts
