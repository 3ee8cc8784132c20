#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "run/messages/messages.hpp"

namespace taas::run {

// A message on the wire is one JSON object: the members of its struct (base/json/json.hpp) and "type", the struct's
// name in snake_case: {"type":"start_ranks","generation":0,…}. Whole numbers keep all their 64 bits.

std::string encode(const AgentMessage& message);
std::string encode(const CoordinatorMessage& message);

/// The error names the member ("start_ranks.shares[0].node: missing").
Result<AgentMessage> decode_agent_message(std::string_view text);
Result<CoordinatorMessage> decode_coordinator_message(std::string_view text);

/// The message with every text cut to what a person would read of it, for the case that all of them are too long to be
/// sent: what matters, such as how a rank ended, still arrives.
AgentMessage shorten(AgentMessage message);

}  // namespace taas::run
