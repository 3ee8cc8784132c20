#include "run/messages/code_frames.hpp"

#include "catch.hpp"
#include "run/messages/file_frames.hpp"
#include "run/messages/wire.hpp"

namespace code_frames_test {

using namespace taas::run;

namespace {

CodeOffer an_offer() {
  return {3,
          true,
          "/home/u/\xff",
          "/runs/1",
          {{"a/\n\"b.py", "", false, 1ull << 33, std::string(kDigestBytes, '\xfe')},
           {"run.sh", "", true, 0, std::string(kDigestBytes, '\0')},
           {"link", "a/\x80", false, 0, ""}}};
}

}  // namespace

TEST_CASE("what is said of the program's files comes back as it was") {
  const auto offer = std::get<CodeOffer>(decode_code_frame(encode(an_offer())).value());
  CHECK(offer.version == 3);
  CHECK(offer.replaces);
  CHECK(offer.folder == an_offer().folder);
  CHECK(offer.run_folder == "/runs/1");
  CHECK(offer.files == an_offer().files);
  const auto wanted = std::get<CodeWanted>(decode_code_frame(encode(CodeWanted{1, 2, 1ull << 33, 4})).value());
  CHECK((wanted.version == 1 && wanted.file == 2 && wanted.offset == 1ull << 33 && wanted.size == 4));
  const std::string content("\0\1\xff{}", 5);
  const auto frame = encode(CodePiece{1, 2, 3, content});
  const auto piece = std::get<CodePiece>(decode_code_frame(frame).value());
  CHECK((piece.version == 1 && piece.file == 2 && piece.offset == 3 && piece.bytes == content));
}

TEST_CASE("a frame of the program's files is no other one") {
  CHECK(is_code_frame(encode(CodeWanted{})));
  CHECK_FALSE(is_file_frame(encode(CodeWanted{})));
  CHECK_FALSE(is_code_frame(encode(FileCancelled{1})));
  CHECK_FALSE(is_code_frame(encode(AgentMessage(Remark{"x"}))));
  CHECK_FALSE(is_code_frame(""));
}

TEST_CASE("broken frames of the program's files are errors") {
  const CodeOffer one{1, false, "/f", "/r", {{"name", "", false, 5, std::string(kDigestBytes, 'd')}}};
  const auto whole = encode(one), empty = encode(CodeOffer{1, false, "/f", "/r", {}});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    INFO(size);
    CHECK(decode_code_frame(whole.substr(0, size)).has_value() == (size == empty.size()));
  }
  CHECK_FALSE(decode_code_frame(empty + "\7").has_value());
  CHECK_FALSE(decode_code_frame(encode(CodeWanted{}) + "x").has_value());
  CHECK_FALSE(decode_code_frame(std::string("\1\4", 2) + std::string(16, 'x')).has_value());
}

}  // namespace code_frames_test
