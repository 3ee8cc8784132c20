#include "base/text.hpp"

#include "catch.hpp"

namespace text_test {

using namespace taas;

TEST_CASE("split keeps empty parts") {
  using Parts = std::vector<std::string_view>;
  CHECK(split("", ',') == Parts{""});
  CHECK(split("a", ',') == Parts{"a"});
  CHECK(split("a,,b,", ',') == Parts{"a", "", "b", ""});
}

TEST_CASE("trim takes blanks from the ends only") {
  CHECK(trim(" \ta b\t\r") == "a b");
  CHECK(trim(" \t ").empty());
  CHECK(trim("").empty());
  CHECK(trim("\ta ", " ") == "\ta");
}

TEST_CASE("what a terminal would obey is written out") {
  CHECK(printable("plain \xc3\xa9") == "plain \xc3\xa9");
  CHECK(printable("a\nb\tc\r\x1b[31m\x7f") == "a\\nb\\tc\\x0d\\x1b[31m\\x7f");
  CHECK(printable("").empty());
}

}  // namespace text_test
