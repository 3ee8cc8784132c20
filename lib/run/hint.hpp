#pragma once

#include <string>
#include <string_view>

#include "run/events.hpp"

namespace taas::run {

/// One line on what to do next, where a known cause has a known way out; empty otherwise. `text` is what the culprit
/// said.
std::string find_hint(Cause cause, const ExitStatus& status, std::string_view text);

}  // namespace taas::run
