#include "run/error_file.hpp"

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

}  // namespace error_file_test
