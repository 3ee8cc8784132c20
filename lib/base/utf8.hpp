#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace taas {

/// The first character of a text, or its first byte when that begins no well-formed sequence.
struct Utf8Character {
  std::uint32_t code = 0;
  std::size_t length = 1;  ///< bytes
  bool valid = false;
};
/// The text must not be empty.
Utf8Character decode_utf8(std::string_view text);

/// Bytes of the sequence that this byte begins; 0 when it begins none.
std::size_t utf8_length(char lead);
bool is_utf8_continuation(char byte);

/// The text with every byte that is no UTF-8 replaced by U+FFFD: what programs print may be anything, JSON may not.
std::string valid_utf8(std::string_view text);

}  // namespace taas
