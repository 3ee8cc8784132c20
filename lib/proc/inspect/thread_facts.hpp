#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace taas {

/// How much a thread has run. Two readings that are nearly equal show that it has hardly run in between.
struct RunTimes {
  std::uint64_t run_ns = 0;
  std::uint64_t queued_ns = 0;  ///< it could have run, and others did
  std::uint64_t switches = 0;   ///< how often it began to run
};

/// Of a process' main thread. One short file, which the kernel makes without waiting for anything.
std::optional<RunTimes> read_run_times(int pid);
std::optional<RunTimes> parse_run_times(std::string_view schedstat);

/// A system call that a thread is in.
struct SystemCall {
  long number = -1;
  std::array<std::uint64_t, 6> arguments{};
};
/// Nothing for a thread that runs, and for text that names none.
std::optional<SystemCall> parse_system_call(std::string_view syscall);

/// A thread as /proc shows it.
struct ThreadFacts {
  int tid = 0;
  std::string name;
  char state = '?';   ///< as in ps: R, S, D, T, t, Z
  std::string place;  ///< in the kernel, by its name for it; empty: it runs, or that is hidden
  std::optional<SystemCall> call;
};
std::optional<ThreadFacts> read_thread(int pid, int tid);
std::vector<int> threads_of(int pid);

/// What a process' threads have used that live.
struct ProcessUse {
  std::uint64_t cpu_ns = 0;        ///< they ran, or could have
  std::uint64_t io_bytes = 0;      ///< read and written, from memory too
  std::uint64_t memory_bytes = 0;  ///< resident
};
ProcessUse read_use(int pid);

/// What a descriptor leads to, as the process names it: "/data/fifo", "pipe:[77]", "socket:[5]"; empty: not known.
std::string target_of_descriptor(int pid, int descriptor);

}  // namespace taas
