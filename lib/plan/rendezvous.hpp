#pragma once

#include <string_view>

#include "base/error.hpp"
#include "plan/options.hpp"

namespace taas::plan {

/// Whether a text can be a value of --rdzv-endpoint, and of --rdzv-backend; the errors do not name the flag.
Result<> check_endpoint(std::string_view text);
Result<> check_backend(std::string_view text);

/// Reads torchrun's rendezvous flags for a run on one machine: what remains of them is a port and a run id. Flags that
/// make this process one node of several are refused, since a run of its own would silently be something else.
Result<RendezvousOptions> decide_rendezvous(RendezvousOptions options, int nodes);

}  // namespace taas::plan
