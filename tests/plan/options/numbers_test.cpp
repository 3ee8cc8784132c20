#include "plan/options/numbers.hpp"

#include "catch.hpp"

namespace numbers_test {

using taas::plan::parse_integer;

TEST_CASE("an integer is the whole text, but for blanks, or nothing") {
  CHECK(parse_integer("42") == 42);
  CHECK(parse_integer("-3") == -3);
  CHECK(parse_integer(" 7\r\n") == 7);
  for (auto text : {"", " ", "1 2", "+1", "1.0", "0x10", "99999999999", "1a"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_integer(text));
  }
}

}  // namespace numbers_test
