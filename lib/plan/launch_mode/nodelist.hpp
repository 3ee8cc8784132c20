#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace taas::plan {

// How SLURM writes lists. Errors name the text. More than 65,536 entries are an error.

/// "n[1-3,07],r[1-2]n[01-04]-ib" as names, in SLURM's order: the last bracket counts fastest.
Result<std::vector<std::string>> expand_nodelist(std::string_view text);

/// "2(x3),1" as {2, 2, 2, 1}.
Result<std::vector<int>> expand_task_counts(std::string_view text);

}  // namespace taas::plan
