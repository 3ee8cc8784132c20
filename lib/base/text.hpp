#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace taas {

constexpr std::string_view kBlanks = " \t\r";

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

/// The word among these that a mistyped one most likely means: a letter in three may be wrong, one at least, and
/// neighbours that are swapped count as one. Empty when none is near.
std::string_view nearest_word(std::string_view mistyped, std::span<const std::string_view> words);

}  // namespace taas
