#pragma once

#include <string>

#include "run/events/data_events.hpp"
#include "run/events/events.hpp"

namespace taas::run {

/// One JSON object without a line end: {"t": 1.25, "event": "rank_exited", "generation": 0, "rank": 3, …}. Instants are
/// seconds since the run's start, names as in run/events/events.hpp. Bytes that are no UTF-8 become U+FFFD.
std::string journal_line(const Event& event, Instant run_start);

/// Data delivery has events of its own: "data_progress" and so on.
std::string journal_line(const DataEvent& event, Instant run_start);

/// The same with "action" in place of "event". An action has no instant of its own: it was decided on the event before
/// it.
std::string journal_line(const Action& action, Instant run_start);

}  // namespace taas::run
