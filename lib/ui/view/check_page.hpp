#pragma once

#include <string>

#include "run/check/findings.hpp"
#include "ui/text/style.hpp"

namespace taas::ui {

/// What `taas-run check` prints: a line a finding, errors first, and what was looked at.
std::string check_page(const run::CheckReport& report, const Style& style);

}  // namespace taas::ui
