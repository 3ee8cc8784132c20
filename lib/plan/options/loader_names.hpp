#pragma once

#include <string_view>

#include "base/error.hpp"

namespace taas::plan {

/// What --loader takes: "package.module:name.of.attribute", which data workers import.
Result<> check_loader_name(std::string_view name);

}  // namespace taas::plan
