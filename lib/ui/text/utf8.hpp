#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace taas::ui {

/// The greatest length of at most `limit` bytes at which `text` can be cut without splitting a UTF-8 sequence. A
/// sequence that is unfinished at the end of `text` counts as split. Bytes that are no UTF-8 are cut anywhere.
std::size_t whole_prefix(std::string_view text, std::size_t limit);

/// At most `columns` terminal columns of the text: control characters become spaces, escape sequences of colour take no
/// room and are ended by a reset when there were any.
std::string clip(std::string_view text, int columns);

/// Whether the text moves the terminal's cursor by escape sequences, as nested progress bars and full screens do.
/// Colours and clearing a row move nothing.
bool moves_cursor(std::string_view text);

/// The text without what moves the cursor.
std::string without_moves(std::string_view text);

}  // namespace taas::ui
