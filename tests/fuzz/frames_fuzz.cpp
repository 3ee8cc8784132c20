// Bytes into the reader of frames, all at once and in pieces: the first byte of the input is the pieces' length.
// Properties checked on the way (abort on failure): both ways bring the same frames and the same error, and frames put
// together again are the bytes that they were cut from.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "net/frames.hpp"

namespace {

using taas::net::FrameReader;

struct Frames {
  std::vector<std::string> frames;
  bool broken = false;
  bool operator==(const Frames&) const = default;
};

Frames read(std::string_view bytes, std::size_t piece) {
  FrameReader reader;
  Frames result;
  for (; !bytes.empty() && !result.broken; bytes.remove_prefix(std::min(piece, bytes.size()))) {
    reader.append(bytes.substr(0, piece));
    auto frame = reader.next();
    for (; frame && *frame; frame = reader.next()) result.frames.emplace_back(**frame);
    result.broken = !frame;
  }
  return result;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto whole = read(bytes, std::max<std::size_t>(bytes.size(), 1));
  if (whole != read(bytes, data[0] + 1u)) std::abort();
  std::string again;
  for (const auto& frame : whole.frames) taas::net::append_frame(again, frame);
  if (bytes.substr(0, again.size()) != again) std::abort();
  return 0;
}
