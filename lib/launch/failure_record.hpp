#pragma once

#include <map>
#include <string>

#include "base/error.hpp"
#include "run/events/events.hpp"

namespace taas::launch {

/// Writes why the run failed to TORCHELASTIC_ERROR_FILE of this environment, as torchrun does it: for whoever started
/// this launcher, a scheduler, or a launcher whose rank this one is.
Result<> record_failure(const run::Verdict& verdict, const std::map<std::string, std::string>& environment);

}  // namespace taas::launch
