#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace taas::run {

/// What a program says when it ends in native code: an uncaught C++ exception, a sanitizer's report, a failed
/// assertion, an abort by the C library or by Python itself.
struct NativeError {
  std::vector<std::string> statement;  ///< what happened
  std::vector<std::string> frames;     ///< where, nearest first; may be empty
  std::size_t begin = 0;               ///< index of its first line in what was searched
  std::size_t end = 0;                 ///< ... and of the line after its last one
};

bool starts_native_error(std::string_view line);

/// The first of the last native errors in the lines that follow each other without pause.
std::optional<NativeError> find_native_error(std::span<const std::string> lines);

}  // namespace taas::run
