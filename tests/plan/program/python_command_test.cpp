#include "plan/program/python_command.hpp"

#include "catch.hpp"

namespace python_command_test {

namespace {

using taas::plan::parse_python_command;
using Kind = taas::plan::PythonCommand::Kind;

TEST_CASE("what a Python command runs, and how many words stand before it") {
  struct Row {
    std::vector<std::string> words;
    Kind kind;
    std::size_t options;
    std::string program;
  };
  for (const auto& row : std::vector<Row>{
           {{"python3", "x.py"}, Kind::kScript, 1, "x.py"},
           {{"/v/bin/python3.11", "-u", "x.py", "-m", "y"}, Kind::kScript, 2, "x.py"},
           {{"python", "-u", "-m", "a.b", "x"}, Kind::kModule, 2, "a.b"},
           {{"python", "-um", "a.b"}, Kind::kModule, 1, "a.b"},
           {{"python", "-c", "print()", "x"}, Kind::kText, 1, "print()"},
           {{"python", "-W", "error", "-Xdev", "-bb", "-OO", "x"}, Kind::kScript, 6, "x"},
           {{"python", "-uX", "dev", "x"}, Kind::kScript, 3, "x"},
       }) {
    auto parsed = parse_python_command(row.words);
    REQUIRE(parsed);
    CHECK(parsed->kind == row.kind);
    CHECK(parsed->options == row.options);
    CHECK(parsed->program == row.program);
  }
}

TEST_CASE("commands from which no rank can be forked") {
  for (const auto& words : std::vector<std::vector<std::string>>{{},
                                                                 {"python"},
                                                                 {"python", "-u"},
                                                                 {"python", "-"},
                                                                 {"python", "--version"},
                                                                 {"python", "-i", "x.py"},
                                                                 {"python", "-x", "x.py"},
                                                                 {"python", "-m"},
                                                                 {"python", "-W", "error"},
                                                                 {"python", "/dev/stdin"},
                                                                 {"python", "-u", "/dev/fd/63"},
                                                                 {"python", "/proc/self/fd/0", "x"},
                                                                 {"/usr/bin/pythonic", "x.py"},
                                                                 {"/bin/true", "x.py"}}) {
    CHECK_FALSE(parse_python_command(words));
  }
}

}  // namespace

}  // namespace python_command_test
