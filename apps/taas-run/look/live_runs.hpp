#pragma once

#include <ctime>
#include <string>
#include <vector>

#include "base/environment/environment.hpp"
#include "base/error.hpp"
#include "base/fd.hpp"

namespace taas::cli {

/// A run that is under way, and the way to it (launch::CommandSocket).
struct LiveRun {
  std::string name;
  std::string folder;  ///< where the user finds what ranks wrote: "output" in the run's folder
  Fd socket;
  timespec began{};
};

/// Those of this user's on this machine that answer, the newest first.
Result<std::vector<LiveRun>> find_live_runs(const Environment& environment);

/// By its whole name, or a beginning that no other one has; without a name the newest.
Result<LiveRun> choose_live_run(std::vector<LiveRun> runs, const std::string& wanted);

/// One line there, one line back.
Result<std::string> ask_run(const Fd& socket, const std::string& question);

}  // namespace taas::cli
