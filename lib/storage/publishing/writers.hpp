#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/folders/held_folder.hpp"

namespace taas::storage {

/// Whether the process runs and is not on its way out. A dying process is told from a living one before the kernel
/// closes its files, so a file that was closed when this is still true was closed on purpose.
bool process_is_alive(int pid);

/// How a rank's process has ended, as far as its files go.
enum class WriterEnd {
  kWell,    ///< with 0
  kBadly,   ///< with another code, or by the signal that it was told to end with
  kKilled,  ///< by another signal: the kernel closed what it had open
};

/// What is known of all processes of a generation together: the last of these that holds.
enum class WritersState {
  kWell,       ///< each lives, or has ended with 0
  kRaised,     ///< one has just printed a traceback, and lives
  kBadly,      ///< one has ended otherwise than well
  kKilled,     ///< one was killed
  kUncertain,  ///< one is on its way out, and how it ends is not known yet
};

/// The processes of a generation on this node, for the thread that wants to know whether a file was closed on purpose.
class WritingProcesses {
 public:
  /// A generation begins, without any process.
  void clear();
  void add(int pid);
  void ended(int pid, WriterEnd end);
  /// One of them has printed a traceback. It may go on, or end with it.
  void raised(Instant now);
  /// So many were killed before what is asked about, and do not count.
  [[nodiscard]] WritersState look(Instant now, int killed_before = 0) const;
  [[nodiscard]] int killed() const;

 private:
  mutable std::mutex mutex_;
  std::map<int, std::optional<WriterEnd>> processes_;  // by pid; nothing: it has not ended
  std::optional<Instant> raised_;
};

/// Files below a folder that these processes have open for writing at this moment, relative to it, and how many
/// descriptors of one process lead to each. Whatever names lead to the folder.
std::map<std::string, int> names_being_written(const std::vector<int>& pids, const HeldFolder& folder);

}  // namespace taas::storage
