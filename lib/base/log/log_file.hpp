#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/log/log_settings.hpp"

/// Where the lines of log.hpp go.
namespace taas::log {

/// From which level on lines are wanted. From then until open() those that come are kept, as many as kMostKept.
void configure(const LogSettings& settings);

/// From now on lines go to <folder>/<name>-<process id>.log, those that were kept first. The file, and a missing
/// folder, are made with the first line, in the folder above, which is held open from now on; it is rotated at
/// kMostBytes, and kOldFiles older ones stay. A fork that writes has a file of its own.
void open(const std::string& folder, std::string name);

/// What of a host's name may stand in the name of a file.
std::string name_for_file(std::string_view host);

/// As the variables TAAS_LOG and TAAS_LOG_DIR of this process say: for what the launcher starts. The error names the
/// variable.
Result<> open_as_told(std::string name);

/// Waits until all lines are on disk, for no longer than the patience. A process that ends does so by itself.
void flush(std::chrono::milliseconds patience);

constexpr std::size_t kMostKept = 256;
constexpr std::size_t kMostBytes = 8U << 20U;
constexpr std::size_t kOldFiles = 2;

}  // namespace taas::log
