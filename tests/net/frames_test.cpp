#include "net/frames.hpp"

#include <vector>

#include "catch.hpp"

namespace frames_test {

using namespace taas;
using namespace taas::net;

namespace {

std::string framed(const std::vector<std::string>& frames) {
  std::string bytes;
  for (const auto& frame : frames) append_frame(bytes, frame);
  return bytes;
}

/// Reads the bytes in pieces of this size.
std::vector<std::string> cut(std::string_view bytes, std::size_t piece) {
  FrameReader reader;
  std::vector<std::string> frames;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
    reader.append(bytes.substr(0, piece));
    for (auto frame = reader.next().value(); frame; frame = reader.next().value()) frames.emplace_back(*frame);
  }
  return frames;
}

}  // namespace

TEST_CASE("a frame has its length in front, big-endian") {
  CHECK(framed({"abc"}) == std::string("\0\0\0\3abc", 7));
  CHECK(framed({std::string(0x010203, 'x')}).substr(0, 4) == std::string("\0\1\2\3", 4));
}

TEST_CASE("frames come out as they went in, however the bytes are cut") {
  const std::vector<std::string> frames{"", "a", std::string(300, 'b'), "", std::string("\0\0\0\1", 4)};
  const auto bytes = framed(frames);
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) CHECK(cut(bytes, piece) == frames);
}

TEST_CASE("the longest frame passes, a longer one is refused by its length alone") {
  FrameReader reader;
  reader.append(framed({std::string(kMostFrameBytes, 'x')}));
  CHECK(reader.next().value()->size() == kMostFrameBytes);
  reader.append(std::string("\1\0\0\1", 4));
  const auto frame = reader.next();
  REQUIRE_FALSE(frame.has_value());
  CHECK(frame.error().message == "a frame of 16777217 bytes is too long");
}

}  // namespace frames_test
