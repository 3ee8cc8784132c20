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

TEST_CASE("moves are taken out of a stream wherever its pieces end") {
  const std::string stream = "a\x1b[2Ab\x1b[31mred\x1b[0m\x1b[?1049h\x1bMc\rd\n";
  for (std::size_t size = 1; size < stream.size(); ++size) {
    MovesFilter filter;
    std::string text;
    for (std::size_t at = 0; at < stream.size(); at += size) text += filter.add(stream.substr(at, size));
    CHECK(text == "ab\x1b[31mred\x1b[0mc\rd\n");
  }
}

TEST_CASE("a text without escapes has neither colours nor titles nor half of one") {
  CHECK(without_escapes("\x1b[1;35mValueError\x1b[0m: \x1b[35mbad\x1b[0m") == "ValueError: bad");
  CHECK(without_escapes("a\x1b]0;title\ab\x1b]8;;http://x\x1b\\c") == "abc");
  CHECK(without_escapes("a\x1bMb") == "ab");
  CHECK(without_escapes("plain").find("plain") == 0);
  for (auto cut : {"a\x1b", "a\x1b[1;3", "a\x1b]0;ti"}) CHECK(without_escapes(cut) == "a");
}

TEST_CASE("rows end between words, and colours take no room") {
  CHECK(in_rows("short", 5, 2) == "short");
  CHECK(in_rows("  hint: one two three", 12, 4) == "  hint: one\n    two\n    three");
  CHECK(in_rows("a /a/path/that/is/long b", 10, 2) == "a\n  /a/path/that/is/long\n  b");
  CHECK(in_rows("\x1b[1mtaas-run:\x1b[0m six", 13, 2) == "\x1b[1mtaas-run:\x1b[0m six");
  CHECK(in_rows("\x1b[1mtaas-run:\x1b[0m seven", 13, 2) == "\x1b[1mtaas-run:\x1b[0m\n  seven");
  CHECK(in_rows("漢字 漢字", 8, 2) == "漢字\n  漢字");
  CHECK(in_rows("", 0, 2).empty());
  CHECK(in_rows("a  b", 2, 2) == "a \n  b");
}

}  // namespace utf8_test
