#include "plan/environment/environment_file.hpp"

#include "catch.hpp"

namespace environment_file_test {

using namespace taas;
using Variables = std::vector<std::pair<std::string, std::string>>;

TEST_CASE("an environment file has a variable on each line") {
  auto variables = plan::parse_environment_file("A=1\n# a comment\n\n  B=two words=x \r\nEMPTY=\nA=2");
  REQUIRE(variables.has_value());
  CHECK(*variables == Variables{{"A", "1"}, {"B", "two words=x"}, {"EMPTY", ""}, {"A", "2"}});
  CHECK(plan::parse_environment_file("").value().empty());
}

TEST_CASE("the line that is no variable is named") {
  for (auto text : {"A=1\n\nexport B\n", "A=1\n\n=B\n"}) {
    auto wrong = plan::parse_environment_file(text);
    REQUIRE(wrong.has_error());
    CHECK(wrong.error().code == ErrorCode::kUsage);
    CHECK(wrong.error().message == "line 3 is not NAME=value");
  }
}

}  // namespace environment_file_test
