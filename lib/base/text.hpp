#pragma once

#include <string_view>
#include <vector>

namespace taas {

constexpr std::string_view kBlanks = " \t\r";

/// The parts between separators; one empty part for an empty text.
std::vector<std::string_view> split(std::string_view text, char separator);

/// Without blanks at either end.
std::string_view trim(std::string_view text, std::string_view blanks = kBlanks);

}  // namespace taas
