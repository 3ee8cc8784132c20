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

TEST_CASE("a variable that is empty is set all the same, for who asks for that") {
  const Environment environment{{"EMPTY", ""}, {"FULL", "x"}};
  CHECK(find_variable(environment, "EMPTY") == "");
  CHECK(find_variable(environment, "FULL") == "x");
  CHECK(find_variable(environment, "NONE") == std::nullopt);
}

TEST_CASE("changes are set over an environment") {
  CHECK(assignments({{"A", "1"}, {"B", "2"}}, {{"B", "3"}, {"C", "4"}}) ==
        std::vector<std::string>{"A=1", "B=3", "C=4"});
}

}  // namespace environment_test
