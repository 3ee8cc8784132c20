#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

namespace taas::plan {

/// Imports stand at the beginning of a program; a file that is longer may be anything.
inline constexpr std::size_t kMostOfSource = 1 << 20;

/// The first kMostOfSource bytes of a regular file; nothing where it cannot be read, or is a pipe, which is the rank's.
using ReadSource = std::function<std::optional<std::string>(const std::string& path)>;

/// The ReadSource of this machine's files.
std::optional<std::string> read_source(const std::string& path);

}  // namespace taas::plan
