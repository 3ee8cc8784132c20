#pragma once

#include "base/error.hpp"
#include "base/fd.hpp"

namespace taas {

/// /dev/null for reading, close-on-exec: the standard input of a process that has none.
Result<Fd> open_null();

}  // namespace taas
