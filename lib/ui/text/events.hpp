#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "run/events/data_events.hpp"
#include "run/events/events.hpp"

namespace taas::ui {

enum class Stream { kStdout, kStderr };

/// One line of a rank's output. A progress line ended in '\r' (a bar being redrawn), not '\n'; an open one has not
/// ended yet, and raw bytes are set where they are unusual (ui::AssembledLine).
struct OutputLine {
  Rank rank;
  Stream stream;
  std::string text;
  bool progress = false;
  Instant at;
  bool open = false;
  std::optional<std::string> raw = {};
};

/// The launcher says something: one line.
struct Message {
  enum class Level { kInfo, kWarning, kError, kDebug } level;
  std::string text;
  Instant at;
};

/// What the run's logic was told or decided; renderers show what their users want to know of it.
struct RunEvent {
  run::Event event;
};
struct RunAction {
  run::Action action;
};

/// What data delivery told.
struct DataNews {
  run::DataEvent event;
};

using Event = std::variant<OutputLine, Message, RunEvent, RunAction, DataNews>;

}  // namespace taas::ui
