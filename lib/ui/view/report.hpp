#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "run/events/events.hpp"
#include "ui/text/style.hpp"

namespace taas::ui {

/// Lines of one report, at most: also with a restart's announcement.
inline constexpr std::size_t kMaxReportLines = 12;

/// What comes after a failure: nothing, or a restart of all ranks.
struct Restart {
  int world_size = 0;
  int number = 0;  ///< 1 for the first one; 0: it is none of those that are counted
  int limit = 0;   ///< --max-restarts
  Duration pause{};
};

/// The failure report: what failed first and its last words, what followed, where to read on, what to do. When it would
/// be longer than kMaxReportLines, details are left out in the middle. Logs and frames below `folder` are
/// named as they are called there.
std::vector<std::string> failure_report(const run::Verdict& verdict, const Style& style,
                                        const Restart* restart = nullptr, std::string_view folder = {});

/// "restarting all 8 ranks in 2 s, restart 2 of 3".
std::string describe(const Restart& restart, bool same_ranks = true);

/// How the run's work ended up on disk.
struct PublishedOutput {
  std::string directory;
  std::size_t files = 0;
};

/// "done in 12.3 s", and what was published when anything was. `folder`: as above.
std::string success_line(Duration elapsed, const PublishedOutput& output, const Style& style,
                         std::string_view folder = {});

/// The launcher's own words begin with its name: "taas-run: text".
std::string own_line(std::string_view text, const Style& style);

}  // namespace taas::ui
