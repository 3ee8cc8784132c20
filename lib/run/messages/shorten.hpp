#pragma once

#include "run/messages/messages.hpp"

namespace taas::run {

/// The message with every text cut to what a person would read of it, for the case that all of them are too long to be
/// sent: what matters, such as how a rank ended, still arrives.
AgentMessage shorten(AgentMessage message);

}  // namespace taas::run
