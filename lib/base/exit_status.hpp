#pragma once

namespace taas {

// The exit codes of taas-run (docs/for-programs.md), besides that of a rank that failed.

/// Something else than a rank has failed, or something was found to be wrong.
inline constexpr int kFailedExitCode = 1;
/// What cannot begin as it was asked for, as of ErrorCode::kUsage.
inline constexpr int kUsageExitCode = 2;
/// The program cannot be executed, as shells have it.
inline constexpr int kNotExecutableExitCode = 126;
/// There is no such program.
inline constexpr int kNotFoundExitCode = 127;
/// What a signal has ended: this and its number.
inline constexpr int kSignalExitCode = 128;

/// How a process ended.
struct ExitStatus {
  int code = 0;    ///< exit code, when `signal` is 0
  int signal = 0;  ///< the signal that killed it, or 0
  bool core_dumped = false;
  [[nodiscard]] bool success() const { return code == 0 && signal == 0; }
};

}  // namespace taas
