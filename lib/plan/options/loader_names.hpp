#pragma once

#include <string_view>

#include "base/error.hpp"

namespace taas::plan {

/// What --loader takes for any program: a name with something in it, and without what separates names in the data plan.
Result<> check_loader_name(std::string_view name);

/// For a Python program, whose data workers import their loaders: each of `names`, with commas between them, is
/// "package.module:name.of.attribute". Other programs give their loaders names of their own. The error begins with the
/// flag.
Result<> check_python_loaders(std::string_view names);

}  // namespace taas::plan
