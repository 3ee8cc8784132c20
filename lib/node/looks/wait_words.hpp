#pragma once

#include "proc/inspect/thread_facts.hpp"
#include "run/looks/rank_look.hpp"

namespace taas::node {

/// What keeps a thread from running, by the system call that it is in, or, where that is hidden, by the place in the
/// kernel.
struct WaitWords {
  run::Wait wait = run::Wait::kNothing;
  std::string waits_for;
};
WaitWords describe_wait(int pid, const ThreadFacts& thread);

}  // namespace taas::node
