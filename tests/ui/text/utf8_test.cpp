#include "ui/text/utf8.hpp"

#include "catch.hpp"

namespace utf8_test {

using namespace taas::ui;

TEST_CASE("whole_prefix never splits a sequence") {
  const std::string text = "aé漢😀";  // 1 + 2 + 3 + 4 bytes
  const std::vector<std::size_t> expected{0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10};
  for (std::size_t limit = 0; limit < expected.size(); ++limit) CHECK(whole_prefix(text, limit) == expected[limit]);
  CHECK(whole_prefix(text, 100) == 10);
}

TEST_CASE("whole_prefix holds an unfinished sequence back") {
  CHECK(whole_prefix("a\xe6\xbc", 3) == 1);
  CHECK(whole_prefix("a\xf0", 2) == 1);
  CHECK(whole_prefix("abc", 3) == 3);
}

TEST_CASE("whole_prefix cuts what is no UTF-8 anywhere") {
  CHECK(whole_prefix("\x80\x80\x80\x80\x80\x80", 5) == 5);
  CHECK(whole_prefix("\xe6"
                     "abc",
                     1) == 1);
  CHECK(whole_prefix("a\xff", 2) == 2);
}

TEST_CASE("clip counts columns, not bytes") {
  CHECK(clip("hello", 3) == "hel");
  CHECK(clip("hello", 10) == "hello");
  CHECK(clip("ééé", 2) == "éé");
  CHECK(clip("漢字", 3) == "漢");
  CHECK(clip("e\xcc\x81x", 1) == "e\xcc\x81");
  CHECK(clip("a\tb", 3) == "a b");
  CHECK(clip("a\xff"
             "b",
             3) == "a?b");
  CHECK(clip("", 0).empty());
}

TEST_CASE("clip keeps colours and drops other escapes") {
  CHECK(clip("\x1b[31mred\x1b[0m", 2) == "\x1b[31mre\x1b[0m");
  CHECK(clip("a\x1b[2Kb\x1b[A", 5) == "ab");
}

}  // namespace utf8_test
