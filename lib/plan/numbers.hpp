#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace taas::plan {

/// The whole text as a decimal integer; nothing else before or after it.
std::optional<int> parse_integer(std::string_view text);

/// The parts between separators; one empty part for an empty text.
std::vector<std::string_view> split(std::string_view text, char separator);

}  // namespace taas::plan
