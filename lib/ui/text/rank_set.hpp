#pragma once

#include <string>
#include <vector>

#include "base/ids.hpp"

namespace taas::ui {

/// {0,1,2,5} as "0-2,5". Order and repetition do not matter.
std::string format_rank_set(std::vector<Rank> ranks);

}  // namespace taas::ui
