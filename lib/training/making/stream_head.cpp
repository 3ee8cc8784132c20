#include "training/making/stream_head.hpp"

#include <charconv>

namespace taas {
namespace {

/// Takes a number off the front of `text`, and the letter behind it. False when that is not there.
template <class Number>
bool take_number(std::string_view& text, Number& number, char behind) {
  auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  auto length = static_cast<std::size_t>(stop - text.data());
  if (error != std::errc{} || length >= text.size() || text[length] != behind) return false;
  text.remove_prefix(length + 1);
  return true;
}

}  // namespace

std::string StreamHead::to_text() const { return std::to_string(before) + ':' + std::to_string(examples) + ' '; }

HeadAndRest split_head(std::string_view description) {
  StreamHead head;
  auto rest = description;
  bool is_there = take_number(rest, head.before, ':') && take_number(rest, head.examples, ' ');
  if (!is_there) return {.head = std::nullopt, .rest = description};
  return {.head = head, .rest = rest};
}

}  // namespace taas
