#pragma once

#include <boost/describe/class.hpp>
#include <string>
#include <vector>

#include "run/events/run_record.hpp"
#include "ui/text/style.hpp"

namespace taas::ui {

/// A run that has ended, or is under way: what the list shows of it.
struct RunSummary {
  int number = 0;      ///< 0: it has none, as runs of older releases
  std::string id;      ///< its folder's name
  std::string folder;  ///< absolute
  std::string state;   ///< "running", "ended", "lost": its launcher was killed, "unknown": on another host
  std::string ended;   ///< "ok", or why not, in a line
  int exit_code = -1;  ///< negative: it has not ended
  double seconds = 0;  ///< that it has taken so far
  std::string began;   ///< "03:17", "25 Nov", by the clock here
  int ranks = 0;
  int restarts = 0;
  bool has_record = false;
  run::RunRecord record;          ///< where it has one
  std::vector<int> node_of_rank;  ///< as the nodes met last; empty: not known. Not for programs: it may be long
  int changes = -1;               ///< files that differed from the commit; negative: not known
};

/// A table, a run a line, of so many columns.
std::string runs_page(const std::vector<RunSummary>& runs, const Style& style, int columns);

/// "38 s", "1m 02s", "2h 13m".
std::string short_duration(double seconds);

// clang-format off
BOOST_DESCRIBE_STRUCT(RunSummary, (), (number, id, folder, state, ended, exit_code, seconds, began, ranks, restarts, has_record, record, changes))
// clang-format on

}  // namespace taas::ui
