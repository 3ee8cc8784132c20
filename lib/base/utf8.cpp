#include "base/utf8.hpp"

#include <array>

namespace taas {

bool is_utf8_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

std::size_t utf8_length(char lead) {
  auto byte = static_cast<unsigned char>(lead);
  if (byte < 0x80) return 1;
  if (byte >= 0xc2 && byte < 0xe0) return 2;
  if (byte >= 0xe0 && byte < 0xf0) return 3;
  if (byte >= 0xf0 && byte < 0xf5) return 4;
  return 0;
}

Utf8Character decode_utf8(std::string_view text) {
  auto length = utf8_length(text.front());
  if (length == 0 || length > text.size()) return {};
  constexpr std::array<unsigned char, 5> kLeadBits{0, 0x7f, 0x1f, 0x0f, 0x07};
  std::uint32_t code = static_cast<unsigned char>(text.front()) & kLeadBits[length];
  for (std::size_t i = 1; i < length; ++i) {
    if (!is_utf8_continuation(text[i])) return {};
    code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3f);
  }
  constexpr std::array<std::uint32_t, 5> kSmallest{0, 0, 0x80, 0x800, 0x10000};
  if (code < kSmallest[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return {};
  return {code, length, true};
}

std::string valid_utf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    auto decoded = decode_utf8(text);
    result += decoded.valid ? text.substr(0, decoded.length) : std::string_view("\xef\xbf\xbd");
    text.remove_prefix(decoded.length);
  }
  return result;
}

}  // namespace taas
