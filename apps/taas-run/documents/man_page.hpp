#pragma once

#include <string>

namespace taas::cli {

/// taas-run.1 in roff, from the same flags and sentences as the help.
std::string man_page();

}  // namespace taas::cli
