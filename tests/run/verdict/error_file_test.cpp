#include "run/verdict/error_file.hpp"

#include "catch.hpp"

namespace error_file_test {

using namespace taas::run;

TEST_CASE("what @record writes is read") {
  auto error = parse_error_file(R"({"message": {"message": "ValueError: bad shape", "extraInfo": {
      "py_callstack": "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nValueError: bad shape\n",
      "timestamp": "1763722082"}}})");
  REQUIRE(error);
  CHECK(error->message == "ValueError: bad shape");
  REQUIRE(error->callstack.size() == 3);
  CHECK(error->callstack[1] == "  File \"a.py\", line 1, in f");
}

TEST_CASE("a plain message is enough") {
  auto error = parse_error_file(R"({"message": "out of data"})");
  REQUIRE(error);
  CHECK(error->message == "out of data");
  CHECK(error->callstack.empty());
  CHECK(parse_error_file(R"({"message": {"message": "out of data", "errorCode": 3}})")->message == "out of data");
}

TEST_CASE("anything else is no error file") {
  for (const char* text : {"", "{", "[]", "{}", "null", R"({"message": 3})", R"({"message": {"extraInfo": {}}})",
                           R"({"message": ""})", "\xff\xfe"}) {
    INFO(text);
    CHECK_FALSE(parse_error_file(text));
  }
}

TEST_CASE("what is told to whoever started the launcher has its exit code, and the culprit's words") {
  Verdict verdict;
  verdict.summary = "rank 1 was killed by SIGSEGV";
  verdict.detail = {"first line", "second line"};
  verdict.exit_code = 139;
  CHECK(print_error_file(verdict, 17) ==
        R"({"message":{"message":"rank 1 was killed by SIGSEGV","extraInfo":{"py_callstack":"first line\nsecond line",)"
        R"("timestamp":"17"},"errorCode":139}})");
  verdict.error_file = R"({"message": {"message": "KeyError: x", "own": [1]}, "more": 2})";
  CHECK(print_error_file(verdict, 17) == R"({"message":{"message":"KeyError: x","own":[1],"errorCode":139},"more":2})");
  verdict.error_file = R"({"message": "KeyError: x"})";
  CHECK(parse_error_file(print_error_file(verdict, 17))->message == "KeyError: x");
}

}  // namespace error_file_test
