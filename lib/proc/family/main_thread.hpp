#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace taas {

/// What a process' first thread has done so far, and what it does now. Two looks that are equal show that it has not
/// run in between.
struct MainThread {
  std::uint64_t ticks = 0;      ///< of processor time
  std::uint64_t switches = 0;   ///< how often it has begun to wait, or had to
  bool waits_for_lock = false;  ///< where the kernel says so: not for input, the network, a child or a time
  friend bool operator==(const MainThread&, const MainThread&) = default;
};

/// Nothing where there is no such process, or it is not to be looked at.
std::optional<MainThread> look_at_main_thread(int pid);

/// The words that the process' program was started with, the last one if it has started another in its place.
std::vector<std::string> read_command_line(int pid);

}  // namespace taas
