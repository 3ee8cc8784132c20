#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace taas {

/// One process as /proc shows it. The number alone may be another's a moment later; with the start time it is this one.
struct Process {
  int pid = 0;
  char state = 0;  ///< by its letter in proc(5): 'Z' is a zombie
  int parent = 0;  ///< changes when that one ends
  int group = 0;
  std::uint64_t started = 0;  ///< clock ticks since boot
  friend bool operator==(const Process& a, const Process& b) { return a.pid == b.pid && a.started == b.started; }
  friend auto operator<=>(const Process& a, const Process& b) {
    return a.pid != b.pid ? a.pid <=> b.pid : a.started <=> b.started;
  }
};

/// Nothing when there is none of this number.
std::optional<Process> read_process(int pid);

/// Orphans below this process become its children, instead of init's, from now on and for good.
void become_subreaper();

/// Children of this process, their children and so on, zombies included. What is below a spared process is left out
/// with it. A process that is just being made may be missed: look again until nothing new appears.
std::vector<Process> descendants(const std::set<int>& spared = {});

/// Sends these signals to each of the processes, and never to another that has got the number of one of them.
void signal_processes(const std::vector<Process>& processes, std::initializer_list<int> signals);

/// What to call a process in a message: "4711 (sh -c 'aws s3 cp model.pt s3://bucket')", one line and not too long.
std::string describe(const Process& process);

/// SIGKILLs all descendants and those they make meanwhile, until nothing new appears: where some do, they are stopped
/// before they are killed, so that they cannot go on making others. Does not wait for their end.
void kill_descendants(const std::set<int>& spared = {});

/// True when this process has no child left, by the kernel's word; as a subreaper it then has no descendant either.
bool has_no_children();

/// Kills all descendants and reaps them, blocking. What is left after `patience` (stuck in the kernel, or another
/// user's) is returned.
std::vector<Process> kill_and_reap_descendants(std::chrono::milliseconds patience);

}  // namespace taas
