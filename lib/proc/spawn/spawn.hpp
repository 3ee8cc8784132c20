#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/fd.hpp"

namespace taas {

class Ruleset;

/// Whom the kernel kills when memory runs out.
enum class WhenMemoryRunsOut {
  kBeforeLauncher,  ///< the process, and what it starts (see ChildOomScore)
  kLikeLauncher,    ///< whoever is larger
};

/// What to run, and how. Everything pointed to must live until spawn() returns.
struct SpawnRequest {
  std::vector<std::string> argv;                 ///< argv[0] is searched in PATH of `environment` unless it has a slash
  std::vector<std::string> environment;          ///< complete: "NAME=value"
  const Fd* standard_input = nullptr;            ///< null: the launcher's own
  const Fd* standard_output = nullptr;           ///< null: the launcher's own
  const Fd* standard_error = nullptr;            ///< null: the launcher's own
  std::vector<const Fd*> inherited = {};         ///< become descriptors 3, 4, and so on
  const Ruleset* read_only = nullptr;            ///< Landlock rules to put on the process; null: none
  std::optional<std::string> working_directory;  ///< the launcher's own unless set
  std::optional<std::uint64_t> open_files_limit;  ///< soft RLIMIT_NOFILE to restore, when the launcher raised its own
  WhenMemoryRunsOut when_memory_runs_out = WhenMemoryRunsOut::kBeforeLauncher;
  std::vector<int> ignored_signals = {};  ///< which the program ignores until it handles them
  std::vector<int> processors = {};       ///< that it may use (numa.hpp); empty: all of the launcher's
};

/// A process that was started and not yet reaped. Hand it to Family::watch() (or an ExitWatch) before the event loop
/// turns: dropping it neither kills nor reaps the process.
struct Child {
  int pid = -1;
  Fd end;                  ///< of watch_child()
  bool preloaded = false;  ///< forked from a PreloadedPython
};

/// Starts a process and returns once its program runs; when that cannot be, the error's errno says why (ENOENT, EACCES,
/// ENOEXEC, …) and no process is left.
///
/// The process leads a session and process group of its own, is killed by the kernel when the calling thread ends, and
/// inherits only its three standard streams and `inherited`, no blocked signals and no ignored ones but those of the
/// request (and SIGHUP stays ignored under nohup). Call it from the thread that lives as long as the launcher.
Result<Child> spawn(const SpawnRequest& request);

}  // namespace taas
