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

TEST_CASE("what moves the cursor is found and taken away") {
  for (auto text : {"\x1b[A", "a\x1b[2A", "\x1b[31m\x1b[1;1H", "\x1b[?1049h",
                    "\x1b"
                    "7",
                    "\x1bM", "\x1b[2J"}) {
    INFO(text);
    CHECK(moves_cursor(text));
    CHECK_FALSE(moves_cursor(without_moves(text)));
  }
  for (auto text : {"", "a", "\x1b[1;31mred\x1b[0m", "\x1b[K", "\x1b[2K", "\x1b[?25l", "\x1b", "\x1b]0;title\a"}) {
    INFO(text);
    CHECK_FALSE(moves_cursor(text));
    CHECK(without_moves(text) == text);
  }
  CHECK(without_moves("a\x1b[Ab\x1b[31mc\x1b[2;3Hd") == "ab\x1b[31mcd");
}

}  // namespace utf8_test
