#pragma once

#include <map>
#include <string>
#include <vector>

#include "run/events/events.hpp"

namespace taas::ui {

/// What the log viewers of CI services fold and mark, as lines of a job's output: GitHub's workflow commands
/// ("::group::", "::error file=…") and GitLab's collapsible sections. Nothing elsewhere.
class CiLog {
 public:
  enum class Service { kNone, kGitHub, kGitLab };

  CiLog() = default;
  /// By what the service sets for every job: GITHUB_ACTIONS and GITLAB_CI.
  explicit CiLog(const std::map<std::string, std::string>& environment);

  /// Everything until end_group() can be folded away. Ends the one before it.
  std::vector<std::string> begin_group(const std::string& title);
  std::vector<std::string> end_group();
  /// The failure beside the line of the source file that it comes from, where that is known.
  [[nodiscard]] std::vector<std::string> mark(const run::Verdict& verdict) const;

 private:
  Service service_ = Service::kNone;
  std::string workspace_;  // paths are shown relative to it
  int groups_ = 0;
  bool open_ = false;
};

}  // namespace taas::ui
