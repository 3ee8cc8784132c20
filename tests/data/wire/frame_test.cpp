#include "data/wire/frame.hpp"

#include "catch.hpp"

namespace frame_test {

using namespace taas;
using namespace taas::data;

TEST_CASE("a header is read as it was written") {
  const FrameHeader header{.kind = FrameKind::kDefinition,
                           .flags = kDescriptor,
                           .stream = 3,
                           .number = 1ull << 40,
                           .attempt = ~0ull,
                           .slot = 17,
                           .description_size = 5,
                           .payload_size = 38'535'168,
                           .value = 0x0123456789abcdef};
  const auto bytes = encode(header, "hello");
  const auto read = decode_header(bytes);
  REQUIRE(read.has_value());
  CHECK(*read == header);
  CHECK(fits(bytes, "hello"));
  CHECK_FALSE(fits(bytes, "hellO"));
  CHECK_FALSE(fits(bytes, "hell"));
}

TEST_CASE("the bytes are little-endian at fixed places") {
  const auto bytes = encode({.kind = FrameKind::kTask, .stream = 1, .number = 2, .payload_size = 0x0102}, "");
  CHECK(std::string(reinterpret_cast<const char*>(bytes.data()), 4) == "TASD");
  CHECK(bytes[4] == std::byte{1});
  CHECK(bytes[5] == std::byte{5});
  CHECK(bytes[8] == std::byte{1});
  CHECK(bytes[16] == std::byte{2});
  CHECK(bytes[40] == std::byte{2});
  CHECK(bytes[41] == std::byte{1});
}

TEST_CASE("any changed bit of a header is noticed") {
  const auto whole = encode({.kind = FrameKind::kRaised, .payload_size = 10}, "d");
  for (std::size_t bit = 0; bit < 8 * kHeaderBytes; ++bit) {
    auto bytes = whole;
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    CHECK_FALSE(decode_header(bytes).has_value());
  }
}

TEST_CASE("what a kind of frame may not carry is refused") {
  const auto refusal = [](const FrameHeader& header, const std::string& description = {}) {
    const auto read = decode_header(encode(header, description));
    REQUIRE_FALSE(read.has_value());
    CHECK(read.error().code == ErrorCode::kProtocol);
    return read.error().message;
  };
  CHECK_THAT(refusal({.kind = static_cast<FrameKind>(99)}), ContainsSubstring("unknown kind 99"));
  CHECK_THAT(refusal({.kind = static_cast<FrameKind>(0)}), ContainsSubstring("unknown kind 0"));
  CHECK_THAT(refusal({.kind = FrameKind::kPing, .payload_size = 1}), ContainsSubstring("1 bytes of payload"));
  CHECK_THAT(refusal({.kind = FrameKind::kBatch, .payload_size = 1ull << 41}), ContainsSubstring("bytes of payload"));
  CHECK_THAT(refusal({.kind = FrameKind::kStarted}, "text"), ContainsSubstring("4 bytes of text"));
  CHECK_THAT(refusal({.kind = FrameKind::kBatch}, "x"), ContainsSubstring("1 bytes of text"));
  CHECK_THAT(refusal({.kind = FrameKind::kTask, .flags = kInSlot}), ContainsSubstring("flags 0x1"));
  CHECK_THAT(refusal({.kind = FrameKind::kBatch, .flags = 64}), ContainsSubstring("flags 0x40"));
  CHECK_THAT(refusal({.kind = FrameKind::kBatch, .flags = kInLz4 | kInZstd}), ContainsSubstring("two ways"));
  CHECK_THAT(refusal({.kind = FrameKind::kBatch, .flags = kInSlot}), ContainsSubstring("no slot"));
}

TEST_CASE("a slot's place is inside its memory or refused") {
  const SlotPlace place{.arena = 7, .arena_bytes = 8192, .offset = 4096, .bytes = 4096};
  CHECK(decode_place(encode(place)).value() == place);
  CHECK_FALSE(
      decode_place(encode(SlotPlace{.arena = 7, .arena_bytes = 8192, .offset = 4097, .bytes = 4096})).has_value());
  CHECK_FALSE(decode_place(encode(SlotPlace{.arena_bytes = 8192, .offset = ~0ull, .bytes = 2})).has_value());
  CHECK_FALSE(decode_place(encode(SlotPlace{.arena_bytes = ~0ull, .offset = 0, .bytes = 2})).has_value());
  CHECK_FALSE(decode_place("short").has_value());
}

}  // namespace frame_test
