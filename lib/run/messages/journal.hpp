#pragma once

#include <string>

#include "run/events/data_events.hpp"
#include "run/events/events.hpp"

namespace taas::run {

/// One JSON object without a line end, in published form: {"t":1.25,"event":"rank_exited","generation":0,"rank":3,…}.
/// Names are as in run/events/events.hpp. "run_started" has the version of the schema.
std::string journal_line(const Event& event, Instant run_start);

/// Data delivery has events of its own: "data_progress" and so on.
std::string journal_line(const DataEvent& event, Instant run_start);

/// "source_seen".
std::string journal_line(const SourceSeen& event, Instant run_start);

/// "output_progress".
std::string journal_line(const OutputProgress& event, Instant run_start);

/// The same with "action" in place of "event". `at`: when it was decided, which is when the event became known that it
/// was decided on.
std::string journal_line(const Action& action, Instant at, Instant run_start);

}  // namespace taas::run
