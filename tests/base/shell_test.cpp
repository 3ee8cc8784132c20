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

}  // namespace shell_test
