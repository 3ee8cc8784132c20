#pragma once

#include <string>

#include "base/error.hpp"
#include "ui/view/runs_page.hpp"

namespace taas::cli {

struct LogsOptions {
  int rank = 0;
  int generation = -1;  ///< -1: all
  bool follow = false;  ///< what comes, too, over restarts, until the run ends
  bool json = false;
  bool latest = false;  ///< of what is there already, the last few lines alone
  bool out = true;
  bool err = true;
};

/// What a rank has printed, by its log files in the run's folder. Returns the exit code.
Result<int> print_logs(const ui::RunSummary& run, const LogsOptions& options);

}  // namespace taas::cli
