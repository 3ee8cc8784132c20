#pragma once

#include <optional>

#include "run/events/generation.hpp"
#include "run/events/policy.hpp"
#include "run/verdict/hang.hpp"

namespace taas::run {

/// Whether all that has failed so far has waited for others in vain, until a time was over: what they waited for may
/// show within a moment.
bool only_waited_in_vain(const GenerationRecord& generation);

/// Whom those waited for who have waited in vain, where records of collectives do not tell: ranks that had ended well,
/// or that went on as if nothing had been, or the few that waited at another line. Nothing where that is not certain.
std::optional<Hang> find_absence(const GenerationRecord& generation, const Policy& policy);

}  // namespace taas::run
