#include "base/utf8.hpp"

#include "catch.hpp"

namespace utf8_test {

using namespace taas;

TEST_CASE("valid_utf8 replaces only what is wrong") {
  CHECK(valid_utf8("aé漢😀") == "aé漢😀");
  CHECK(valid_utf8("a\xff"
                   "b") ==
        "a\xef\xbf\xbd"
        "b");
  CHECK(valid_utf8("\xc0\xaf") == "\xef\xbf\xbd\xef\xbf\xbd");
  CHECK(valid_utf8("\xed\xa0\x80") == "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
  CHECK(valid_utf8("\xe6\xbc") == "\xef\xbf\xbd\xef\xbf\xbd");
}

TEST_CASE("decode_utf8 gives the character, or one byte that is none") {
  CHECK(decode_utf8("aé").code == 'a');
  CHECK(decode_utf8("é").code == 0xe9);
  CHECK(decode_utf8("😀!").length == 4);
  CHECK_FALSE(decode_utf8("\xff").valid);
  CHECK(decode_utf8("\xf0\x9f").length == 1);
}

}  // namespace utf8_test
