#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.hpp"

namespace taas::run {

// Numbers in frames that are no JSON: little-endian.

inline void put_number(std::string& bytes, std::uint64_t value, int width) {
  for (int i = 0; i < width; ++i) bytes.push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

/// Takes bytes from the front. What is not there is zero, or empty, and the frame is not complete then.
class FrameBytes {
 public:
  explicit FrameBytes(std::string_view bytes) : bytes_(bytes) {}

  std::uint64_t number(int width) {
    auto text = take(static_cast<std::size_t>(width));
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < text.size(); ++i)
      value |= std::uint64_t{static_cast<unsigned char>(text[i])} << (8 * i);
    return value;
  }
  std::string_view take(std::size_t size) {
    good_ = good_ && size <= bytes_.size();
    if (!good_) return {};
    auto taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }
  std::string_view rest() { return take(bytes_.size()); }
  [[nodiscard]] bool good() const { return good_; }
  [[nodiscard]] bool complete() const { return good_ && bytes_.empty(); }

 private:
  std::string_view bytes_;
  bool good_ = true;
};

/// A frame of a family that is no JSON: the first byte is the family's mark, the second one the kind.
inline bool has_mark(std::string_view frame, char mark) { return !frame.empty() && frame.front() == mark; }

/// `decode` gets the kind and what follows, all of which has to be read: nothing where there is no such kind. `of` what
/// it is, for errors.
template <class Frame>
Result<Frame> decode_marked(std::string_view frame, char mark, const std::string& of,
                            std::optional<Frame> (*decode)(char kind, FrameBytes& bytes)) {
  if (frame.size() < 2 || !has_mark(frame, mark)) return protocol_error("not a frame of " + of);
  FrameBytes bytes(frame.substr(2));
  auto decoded = decode(frame[1], bytes);
  if (!decoded || !bytes.complete()) return protocol_error("a broken frame of " + of);
  return std::move(*decoded);
}

}  // namespace taas::run
