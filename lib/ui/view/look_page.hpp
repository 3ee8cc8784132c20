#pragma once

#include <string>

#include "run/looks/look_report.hpp"
#include "ui/text/style.hpp"

namespace taas::ui {

/// What `taas-run look` prints: the run's state, who waits for whom, then the ranks in groups that do the same at the
/// same place, those first whom the others wait for. With one rank: all of its threads and processes.
std::string look_page(const run::LookReport& report, const Style& style);

/// Its first line: "run 20261125-0301, 8 ranks on 2 nodes: moves".
std::string look_headline(const run::LookReport& report, const Style& style);

}  // namespace taas::ui
