#pragma once

#include <string>

#include "taas/process_group.hpp"

namespace taas {

// Collectives: each returns the same text on every rank.

/// The text of rank 0.
std::string broadcast_text(const ProcessGroup& group, const std::string& mine);

/// The text of the lowest rank that has one; empty when none has.
std::string first_text(const ProcessGroup& group, const std::string& mine);

}  // namespace taas
