#pragma once

namespace taas {

/// The exit code of what cannot begin as it was asked for, as of ErrorCode::kUsage.
inline constexpr int kUsageExitCode = 2;

/// How a process ended.
struct ExitStatus {
  int code = 0;    ///< exit code, when `signal` is 0
  int signal = 0;  ///< the signal that killed it, or 0
  bool core_dumped = false;
  [[nodiscard]] bool success() const { return code == 0 && signal == 0; }
};

}  // namespace taas
