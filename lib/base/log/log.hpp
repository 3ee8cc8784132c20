#pragma once

#include <fmt/format.h>

#include <utility>

#include "base/log/log_line.hpp"

/// What an expert wants to know of a launcher that misbehaves, for files that nobody looks into while all is well. What
/// a user is to know is an event of the run, and stands in its journal (docs/design-launcher.md).
///
/// All functions may be called in any thread. A line that is not wanted costs one relaxed load; one that is wanted is
/// formatted here, and written by a thread that begins with the first of them. Values of secrets never go in.
namespace taas::log {

template <class... Values>
void line(LogPart part, LogLevel level, fmt::format_string<Values...> text, Values&&... values) {
  if (is_on(part, level)) write(part, level, fmt::format(text, std::forward<Values>(values)...));
}

template <class... Values>
void trace(LogPart part, fmt::format_string<Values...> text, Values&&... values) {
  line(part, LogLevel::kTrace, text, std::forward<Values>(values)...);
}
template <class... Values>
void debug(LogPart part, fmt::format_string<Values...> text, Values&&... values) {
  line(part, LogLevel::kDebug, text, std::forward<Values>(values)...);
}
template <class... Values>
void info(LogPart part, fmt::format_string<Values...> text, Values&&... values) {
  line(part, LogLevel::kInfo, text, std::forward<Values>(values)...);
}
template <class... Values>
void warning(LogPart part, fmt::format_string<Values...> text, Values&&... values) {
  line(part, LogLevel::kWarning, text, std::forward<Values>(values)...);
}

}  // namespace taas::log
