#pragma once

#include <map>
#include <string>

#include "base/error.hpp"
#include "base/fd.hpp"
#include "plan/launch_mode/launch_mode.hpp"
#include "slurm/meeting_file.hpp"

namespace taas::cli {

/// How the tasks of one SLURM step find each other: a private file in the output folder, which all nodes see, tells the
/// leaders where the coordinator listens and the secret; a lock in a private folder of each node tells its other tasks
/// when the leader's work is over.
class Meeting {
 public:
  Meeting(const std::string& output_directory, const plan::SlurmTask& mode,
          const std::map<std::string, std::string>& environment);
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;
  /// A leader's lock has no name any more.
  ~Meeting();

  [[nodiscard]] const MeetingFile& file() const { return file_; }

  /// A leader: holds the node's lock as long as this process and its children live.
  Result<> lead();
  /// Another task: returns once its leader has ended, with success, since the leader tells how the run ended. A task
  /// that does not see the leader's lock, as with a private /tmp, goes by the file.
  [[nodiscard]] Result<int> wait_for_leader() const;

 private:
  MeetingFile file_;
  Result<std::string> lock_;  ///< or why there can be none
  Fd held_;
};

/// SLURM_NODEID; -1 where there is none.
int slurm_node(const std::map<std::string, std::string>& environment);

}  // namespace taas::cli
