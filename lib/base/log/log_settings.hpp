#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.hpp"

namespace taas {

/// Whose lines they are: each part of the product can be listened to by itself.
enum class LogPart : std::uint8_t {
  kCoordinator,  ///< what the coordinator hears, decides and sends
  kAgent,        ///< the same of an agent
  kProcess,      ///< ranks, data workers and other processes: started, signalled, ended
  kNet,          ///< connections between machines: attempts, handshakes, losses
  kStore,        ///< the store of the ranks
  kStorage,      ///< the run's folder, and files that are published
  kData,         ///< delivery of batches: clients, servers, workers
  kTraining,     ///< libtaas
};
inline constexpr std::size_t kLogParts = 8;

enum class LogLevel : std::uint8_t { kTrace, kDebug, kInfo, kWarning, kError, kOff };

/// The variable with what --log-level would say; ranks and data workers read it as well.
inline constexpr const char* kLogVariable = "TAAS_LOG";
/// Where the files of ranks and data workers go; set by the launcher, beside kLogVariable.
inline constexpr const char* kLogFolderVariable = "TAAS_LOG_DIR";

/// From which level on the lines of each part are kept.
struct LogSettings {
  LogSettings() { levels.fill(LogLevel::kWarning); }
  std::array<LogLevel, kLogParts> levels;
  bool console = false;  ///< standard error gets them too
};

/// As in "debug,net=trace,console": one level for all parts, levels of single parts, and whether standard error gets
/// the lines too. Empty: warnings and errors.
Result<LogSettings> parse_log_settings(std::string_view text);

std::string_view name_of(LogPart part);
std::string_view name_of(LogLevel level);

}  // namespace taas
