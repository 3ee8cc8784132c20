#include "run/messages/file_frames.hpp"

#include "catch.hpp"
#include "run/messages/wire.hpp"

namespace file_frames_test {

using namespace taas::run;

TEST_CASE("names and content are bytes") {
  FileOffer offer{7, 1ull << 40, 0640, 3, "a/\xff\n\"b", "../\x80"};
  auto bytes = encode(offer);
  auto back = std::get<FileOffer>(decode_file_frame(bytes).value());
  CHECK(back.transfer == 7);
  CHECK(back.size == 1ull << 40);
  CHECK(back.mode == 0640);
  CHECK(back.waiting == 3);
  CHECK(back.name == offer.name);
  CHECK(back.points_to == offer.points_to);
  std::string content("\0\xff{}", 4);
  bytes = encode(FilePiece{8, content});
  CHECK(std::get<FilePiece>(decode_file_frame(bytes).value()).bytes == content);
  CHECK(std::get<FileCancelled>(decode_file_frame(encode(FileCancelled{9})).value()).transfer == 9);
}

TEST_CASE("a frame of a file is no message, and no message is one") {
  CHECK(is_file_frame(encode(FileCancelled{1})));
  CHECK_FALSE(is_file_frame(encode(AgentMessage(Remark{"x"}))));
  CHECK_FALSE(is_file_frame(""));
}

TEST_CASE("broken frames are errors") {
  auto offer = encode(FileOffer{1, 2, 3, 4, "name", ""});
  for (std::size_t size = 0; size < offer.size(); ++size) {
    INFO(size);
    CHECK_FALSE(decode_file_frame(offer.substr(0, size)).has_value());
  }
  CHECK_FALSE(decode_file_frame(std::string("\0\4", 2) + std::string(8, 'x')).has_value());
  CHECK_FALSE(decode_file_frame(encode(FileCancelled{1}) + "x").has_value());
}

}  // namespace file_frames_test
