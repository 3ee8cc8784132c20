#include "base/shell.hpp"

#include "catch.hpp"

namespace shell_test {

using namespace taas;

TEST_CASE("whatever is in it, a shell reads one word") {
  CHECK(quote_for_shell("train.py") == "'train.py'");
  CHECK(quote_for_shell("") == "''");
  CHECK(quote_for_shell("a b $HOME `x` \"y\" \\") == "'a b $HOME `x` \"y\" \\'");
  CHECK(quote_for_shell("it's") == "'it'\\''s'");
}

TEST_CASE("for people a word is in quotes only where a shell needs them") {
  CHECK(type_for_shell("train.py") == "train.py");
  CHECK(type_for_shell("") == "''");
  CHECK(type_for_shell("it's") == "'it'\\''s'");
  CHECK(type_for_shell({"train.py", "--name", "a b"}) == "train.py --name 'a b'");
}

}  // namespace shell_test
