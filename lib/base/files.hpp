#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/fd.hpp"

namespace taas {

/// The whole of a small file, such as one under /proc.
Result<std::string> read_file(const std::string& path);

/// All that comes until its end.
Result<std::string> read_all(const Fd& fd);

/// The same, but no more than so many bytes.
Result<std::string> read_up_to(const Fd& fd, std::size_t most);

/// The first bytes of a regular file that somebody else may have written, at most so many. Anything else in its place,
/// such as a FIFO, which could block whoever opens it, and whose writer would take that for its reader, is an error.
Result<std::string> read_regular_file(const std::string& path, std::size_t most);

/// Writes all bytes, through interruptions and short writes.
Result<> write_all(const Fd& fd, std::string_view bytes);

}  // namespace taas
