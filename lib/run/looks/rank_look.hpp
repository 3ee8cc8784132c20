#pragma once

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/ids.hpp"

namespace taas::run {

// What a rank's processes do, as seen from outside: nothing is needed in them, and nothing is asked of them.

/// A call, as a traceback has it.
struct SeenFrame {
  std::string function;
  std::string file;
  int line = 0;
  friend bool operator==(const SeenFrame&, const SeenFrame&) = default;
};

/// What keeps a thread from running.
enum class Wait {
  kNothing,  ///< it runs, or could
  kLock,     ///< a lock, a condition or another thread
  kTime,     ///< it sleeps
  kInput,    ///< input of a terminal, or of standard input
  kPipe,     ///< the other end of a pipe or FIFO
  kNetwork,  ///< a peer on a socket
  kEvents,   ///< any of several descriptors
  kFile,     ///< a file
  kChild,    ///< the end of another process
  kDisk,     ///< the kernel, where no signal reaches it (state D)
  kStopped,  ///< SIGCONT, or a debugger
  kOther,
};

struct SeenThread {
  int tid = 0;
  std::string name;
  Wait wait = Wait::kNothing;
  std::string waits_for;  ///< in words: "a lock", "the other end of /tmp/fifo"; empty: it runs
  bool holds_gil = false;
  std::vector<SeenFrame> frames;  ///< innermost first; not all
};

struct SeenProcess {
  int pid = 0;
  std::string command;              ///< shortened
  std::vector<SeenThread> threads;  ///< the main one first; not all
  std::string unread = {};          ///< why there are no frames, if that is worth a word
};

/// One rank at one instant, or one data worker. Numbers count from its start; those of children that have ended are
/// missing.
struct RankLook {
  Rank rank;                           ///< -1: of a data worker
  std::string data_worker;             ///< "data worker 3 (host b)"; empty: of a rank
  Instant at;                          ///< the agent's clock
  std::uint64_t cpu_ns = 0;            ///< that its processes ran, or waited for a processor
  std::uint64_t switches = 0;          ///< how often its main thread began to run
  std::uint64_t memory_bytes = 0;      ///< resident, of its processes; what they share counts in each
  std::uint64_t steps = 0;             ///< of training, where the program counts them (taas.step())
  double step_rate = 0;                ///< a second
  Instant step_at;                     ///< of the last one, on the agent's clock; 0: there was none
  int gpu_percent = -1;                ///< of the time that its GPU was busy lately; negative: not known
  std::uint64_t gpu_bytes = 0;         ///< held of that GPU, by whomever
  std::uint64_t io_bytes = 0;          ///< that its processes read and wrote
  std::vector<SeenProcess> processes;  ///< its own first; not all
};

// clang-format off
BOOST_DESCRIBE_STRUCT(SeenFrame, (), (function, file, line))
BOOST_DESCRIBE_ENUM(Wait, kNothing, kLock, kTime, kInput, kPipe, kNetwork, kEvents, kFile, kChild, kDisk, kStopped, kOther)
BOOST_DESCRIBE_STRUCT(SeenThread, (), (tid, name, wait, waits_for, holds_gil, frames))
BOOST_DESCRIBE_STRUCT(SeenProcess, (), (pid, command, threads, unread))
BOOST_DESCRIBE_STRUCT(RankLook, (), (rank, data_worker, at, cpu_ns, switches, memory_bytes, steps, step_rate, step_at, gpu_percent, gpu_bytes, io_bytes, processes))
// clang-format on

/// Neither Python's own nor a package's: written by the user, as far as its place tells.
bool is_own_file(std::string_view file);

}  // namespace taas::run
