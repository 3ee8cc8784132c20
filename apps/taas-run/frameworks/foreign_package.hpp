#pragma once

#include <string>

#include "base/error.hpp"
#include "plan/launch_plan.hpp"

namespace taas::cli {

/// In an environment that this launcher was installed into with pip: the metadata of PyPI's unrelated distribution
/// `taas`, whose files are then mixed with those of our package. Empty when it is not there.
std::string foreign_package();

/// What that means for a run: with data delivery, which needs the package, an error; for other Python programs, which
/// may do without, a notice, since `import taas` may end up in either. Only then it is looked for.
Result<> check_foreign_package(plan::LaunchPlan& plan);

}  // namespace taas::cli
