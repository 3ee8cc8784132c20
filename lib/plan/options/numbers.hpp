#pragma once

#include <optional>
#include <string_view>

namespace taas::plan {

/// The whole text as a decimal integer; nothing but blanks and line ends before or after it.
std::optional<int> parse_integer(std::string_view text);

}  // namespace taas::plan
