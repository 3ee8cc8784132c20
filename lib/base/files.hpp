#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/fd.hpp"

namespace taas {

/// The whole of a small file, such as one under /proc.
Result<std::string> read_file(const std::string& path);

/// Writes all bytes, through interruptions and short writes.
Result<> write_all(const Fd& fd, std::string_view bytes);

}  // namespace taas
