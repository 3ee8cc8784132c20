#pragma once

#include <string>

#include "run/looks/look_report.hpp"
#include "ui/text/style.hpp"

namespace taas::ui {

/// What `taas-run top` prints: a line a rank, and whether it is far slower than the others. At most `rows` lines, each
/// of at most `columns`; where there are more ranks, those that stand out come first.
std::string top_page(const run::LookReport& report, const Style& style, int rows, int columns);

}  // namespace taas::ui
