#pragma once

#include <string>

#include "base/error.hpp"

namespace taas {

struct SpawnRequest;

/// Steps by which a process becomes a program. lib/python/preload/taas_preload/rank.py goes by their numbers.
enum class SpawnStep : int { kStreams, kSession, kParent, kLimit, kReadOnly, kDirectory, kProcessors, kExec };

/// What a process writes to the launcher when it cannot become the program.
struct SpawnFailure {
  SpawnStep step = SpawnStep::kExec;
  int system_errno = 0;
};

/// `program` is the file that was found for argv[0].
Error describe(const SpawnFailure& failure, const SpawnRequest& request, const std::string& program);

/// `what` is "a process" or the like: the system has not started one. Where a limit may be why, it is named.
Error cannot_fork(const std::string& what, int system_errno);

/// Kills a child that nobody watches yet, and reaps it.
void discard_child(int pid);

}  // namespace taas
