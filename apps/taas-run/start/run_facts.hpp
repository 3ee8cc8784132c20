#pragma once

#include "run/events/events.hpp"
#include "start/launch.hpp"

namespace taas::cli {

/// What the journal begins with. All of it comes from files, and no program is asked. Python's and torch's versions are
/// those that are installed on this machine for the Python of the program.
run::RunStarted run_started(const Launching& launching);

}  // namespace taas::cli
