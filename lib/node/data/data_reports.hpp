#pragma once

#include <string_view>

#include "base/error.hpp"
#include "run/messages/messages.hpp"

namespace taas::node {

/// One datagram of TAAS_EVENTS as a message: DataProgress, DataPrepared, DataWork or Remark. Members that are not there
/// are 0. docs/data-workers.md has the forms.
Result<run::AgentMessage> parse_data_report(std::string_view text, Instant at);

}  // namespace taas::node
