#include "base/environment/environment.hpp"

#include "catch.hpp"

namespace environment_test {

using namespace taas;

TEST_CASE("an assignment is cut at its first equals sign") {
  auto cut = split_assignment("A=b=c");
  REQUIRE(cut);
  CHECK(cut->first == "A");
  CHECK(cut->second == "b=c");
  CHECK(split_assignment("A=")->second.empty());
}

TEST_CASE("a text without a name or an equals sign is no assignment") {
  CHECK_FALSE(split_assignment("A"));
  CHECK_FALSE(split_assignment("=b"));
  CHECK_FALSE(split_assignment(""));
}

TEST_CASE("a variable that is empty counts as unset") {
  const Environment environment{{"SET", "1"}, {"EMPTY", ""}};
  CHECK(value_of(environment, "SET", "2") == "1");
  CHECK(value_of(environment, "EMPTY", "2") == "2");
  CHECK(value_of(environment, "ABSENT").empty());
  CHECK(assignments(environment) == std::vector<std::string>{"EMPTY=", "SET=1"});
}

}  // namespace environment_test
