#pragma once

#include <string>
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
};

/// The failure report: what failed first and its last words, what followed, where to read on, what to do. When it would
/// be longer than kMaxReportLines, details are left out in the middle.
std::vector<std::string> failure_report(const run::Verdict& verdict, const Style& style,
                                        const Restart* restart = nullptr);

/// What the last line of a run names.
struct RunResult {
  std::string folder;     ///< the run's own
  int number = 0;         ///< among the runs beside it; 0: it has none
  std::size_t files = 0;  ///< published in its output/
  Duration elapsed{};
  int restarts = 0;
};

/// "done in 12.3 s, 1 restart, 2 files in taas-runs/x/output", "run 31 failed after 2 h 13 min: taas-runs/x".
std::string last_line(run::Cause cause, const RunResult& result, const Style& style);

/// The path as somebody in that folder would write it, where it is below the folder.
std::string relative_to(const std::string& folder, const std::string& path);

/// The launcher's own words begin with its name: "taas-run: text".
std::string own_line(std::string_view text, const Style& style, Paint label = Paint::kBold);

}  // namespace taas::ui
