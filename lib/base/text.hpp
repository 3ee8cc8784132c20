#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace taas {

constexpr std::string_view kBlanks = " \t\r\n";

/// The parts between separators; one empty part for an empty text.
std::vector<std::string_view> split(std::string_view text, char separator);

/// Without blanks at either end.
std::string_view trim(std::string_view text, std::string_view blanks = kBlanks);

bool contains(std::string_view text, std::string_view part);

/// One line that does to a terminal nothing but stand there, for names that could hold anything: control characters are
/// written as "\n", "\t" or "\x1b".
std::string printable(std::string_view text);

/// "1 rank", "8 ranks".
std::string plural(std::int64_t count, std::string_view what);

/// "RankExited" and "kExitCode" as "rank_exited" and "exit_code".
std::string snake_case(std::string_view name);

}  // namespace taas
