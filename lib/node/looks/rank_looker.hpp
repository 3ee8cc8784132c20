#pragma once

#include <set>
#include <string>
#include <vector>

#include "proc/family/descendants.hpp"
#include "proc/inspect/python_stacks.hpp"
#include "run/looks/rank_look.hpp"

namespace taas::node {

/// Looks at ranks' processes from outside. Reading what the kernel says of a process may wait for it where it is stuck,
/// so this is for a thread that nobody waits for.
class RankLooker {
 public:
  enum class Detail { kWhatMatters, kEverything };
  struct Target {
    Rank rank;
    int pid = 0;
    std::string data_worker = {};  ///< as in RankLook
    std::string step_file = {};    ///< where it counts its steps
    std::string gpu = {};          ///< that is its own, as CUDA_VISIBLE_DEVICES names it; empty: it has none
  };
  /// `native`: frames of ranks that are no Python, too, and the function that holds a GIL. It takes some hundredths of
  /// a second.
  std::vector<run::RankLook> look(const std::vector<Target>& targets, Detail detail, bool native);

 private:
  run::RankLook look_at(const Target& target, const std::vector<Process>& below, Detail detail);
  run::SeenProcess see(int pid, Detail detail);

  PythonReader python_;
  std::set<int> no_python_;  // of the processes of this look, those that have no interpreter
};

}  // namespace taas::node
