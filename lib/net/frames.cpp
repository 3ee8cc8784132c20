#include "net/frames.hpp"

#include <fmt/format.h>

namespace taas::net {

namespace {

constexpr std::size_t kHeaderBytes = 4;
/// An empty buffer keeps at most this.
constexpr std::size_t kMaxSpare = 64 * 1024;

std::size_t read_length(std::string_view header) {
  std::size_t length = 0;
  for (const char byte : header) length = length << 8 | static_cast<unsigned char>(byte);
  return length;
}

}  // namespace

void append_frame(std::string& bytes, std::string_view frame) {
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(frame.size() >> shift & 0xff);
  bytes += frame;
}

void FrameReader::append(std::string_view bytes) {
  bytes_.erase(0, std::exchange(read_, 0));
  if (bytes_.empty() && bytes_.capacity() > kMaxSpare) bytes_.shrink_to_fit();
  bytes_ += bytes;
}

Result<std::optional<std::string_view>> FrameReader::next() {
  const auto rest = std::string_view(bytes_).substr(read_);
  if (rest.size() < kHeaderBytes) return std::optional<std::string_view>();
  const auto length = read_length(rest.substr(0, kHeaderBytes));
  if (length > kMostFrameBytes) return protocol_error(fmt::format("a frame of {} bytes is too long", length));
  if (rest.size() - kHeaderBytes < length) return std::optional<std::string_view>();
  read_ += kHeaderBytes + length;
  return std::optional(rest.substr(kHeaderBytes, length));
}

}  // namespace taas::net
