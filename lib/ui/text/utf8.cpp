#include "ui/text/utf8.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/utf8.hpp"

namespace taas::ui {
namespace {

struct Range {
  std::uint32_t first;
  std::uint32_t last;
};

// The blocks that terminals draw over the character before (no column) or in two columns.
constexpr std::array<Range, 6> kZeroWidth{
    {{0x300, 0x36f}, {0x200b, 0x200f}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xfeff, 0xfeff}}};
constexpr std::array<Range, 8> kTwoColumns{{{0x1100, 0x115f},
                                            {0x2e80, 0x303e},
                                            {0x3041, 0xa4cf},
                                            {0xac00, 0xd7a3},
                                            {0xf900, 0xfaff},
                                            {0xfe30, 0xfe6f},
                                            {0xff00, 0xff60},
                                            {0x1f300, 0x1faff}}};

template <std::size_t N>
bool contains(const std::array<Range, N>& ranges, std::uint32_t code) {
  return std::any_of(ranges.begin(), ranges.end(), [&](Range r) { return code >= r.first && code <= r.last; });
}

int columns_of(const Utf8Character& decoded) {
  if (!decoded.valid) return 1;
  if (contains(kZeroWidth, decoded.code)) return 0;
  return contains(kTwoColumns, decoded.code) ? 2 : 1;
}

/// Length of the escape sequence ("\x1b[…letter") at the start of the text; 0: there is none.
std::size_t escape_length(std::string_view text) {
  if (text.size() < 2 || text[0] != '\x1b' || text[1] != '[') return 0;
  for (std::size_t i = 2; i < text.size(); ++i) {
    if (text[i] >= '@' && text[i] <= '~') return i + 1;
  }
  return text.size();
}

/// Length of what moves the cursor at the start of the text; 0: nothing does. The ends of sequences that stay where
/// they are: colour, clearing a row, modes, reports, the cursor's shape.
std::size_t move_length(std::string_view text) {
  if (auto escape = escape_length(text); escape > 0) {
    auto other_screen = text.find("?1049h") == 2 || text.find("?47h") == 2;
    return other_screen || std::string_view("mKhlnctq").find(text[escape - 1]) == std::string_view::npos ? escape : 0;
  }
  bool is_move =
      text.size() > 1 && text[0] == '\x1b' && std::string_view("78DEMc").find(text[1]) != std::string_view::npos;
  return is_move ? 2 : 0;
}

/// Where the first sequence that moves the cursor is; npos: nowhere.
std::size_t find_move(std::string_view text) {
  auto at = text.find('\x1b');
  while (at != std::string_view::npos && move_length(text.substr(at)) == 0) at = text.find('\x1b', at + 1);
  return at;
}

bool is_control(char byte) { return static_cast<unsigned char>(byte) < 0x20 || byte == 0x7f; }

}  // namespace

std::size_t whole_prefix(std::string_view text, std::size_t limit) {
  auto end = std::min(limit, text.size());
  if (end < text.size() && !is_utf8_continuation(text[end])) return end;
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, end); ++back) {
    auto start = end - back;
    if (is_utf8_continuation(text[start])) continue;
    return utf8_length(text[start]) > back ? start : end;
  }
  return end;
}

std::string clip(std::string_view text, int columns) {
  std::string result;
  bool coloured = false;
  while (!text.empty()) {
    if (auto escape = escape_length(text); escape > 0) {
      if (text[escape - 1] == 'm') {
        result += text.substr(0, escape);
        coloured = true;
      }
      text.remove_prefix(escape);
      continue;
    }
    auto decoded = decode_utf8(text);
    columns -= columns_of(decoded);
    if (columns < 0) break;
    if (decoded.valid) {
      result += is_control(text.front()) ? std::string_view(" ") : text.substr(0, decoded.length);
    } else {
      result += '?';
    }
    text.remove_prefix(decoded.length);
  }
  if (coloured) result += "\x1b[0m";
  return result;
}

bool moves_cursor(std::string_view text) { return find_move(text) != std::string_view::npos; }

std::string without_moves(std::string_view text) {
  std::string result;
  for (auto at = find_move(text); at != std::string_view::npos; at = find_move(text)) {
    result += text.substr(0, at);
    text.remove_prefix(at + move_length(text.substr(at)));
  }
  return result += text;
}

}  // namespace taas::ui
