#pragma once

#include <array>
#include <atomic>
#include <string>

#include "base/log/log_settings.hpp"

/// The log without fmt, for files that include torch's headers, which bring an fmt of their own.
namespace taas::log {

/// From which level on each part's lines are wanted: log_file.hpp sets it.
extern std::array<std::atomic<LogLevel>, kLogParts> levels;

/// Costs one relaxed load.
inline bool is_on(LogPart part, LogLevel level) noexcept {
  return level >= levels[static_cast<std::size_t>(part)].load(std::memory_order_relaxed);
}

/// One line. It is for who has asked is_on().
void write(LogPart part, LogLevel level, const std::string& text) noexcept;

}  // namespace taas::log
