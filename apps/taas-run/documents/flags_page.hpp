#pragma once

#include <string>

namespace taas::cli {

/// docs/flags.md: every flag with its value, its meaning, and the variable that its default may come from.
std::string flags_page();

}  // namespace taas::cli
