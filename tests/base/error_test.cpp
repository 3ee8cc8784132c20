#include "base/error.hpp"

#include <cerrno>
#include <stdexcept>

#include "catch.hpp"

namespace error_test {

using namespace taas;

TEST_CASE("an error carries its kind, its errno and what was being done") {
  Error error = system_error("cannot open /x", ENOENT).with("reading the plan");
  CHECK(error.code == ErrorCode::kSystem);
  CHECK(error.system_errno == ENOENT);
  CHECK_THAT(error.message, ContainsSubstring("reading the plan: cannot open /x: No such file"));
  CHECK(usage_error("x").code == ErrorCode::kUsage);
  CHECK(protocol_error("x").code == ErrorCode::kProtocol);
  CHECK(unavailable_error("x").code == ErrorCode::kUnavailable);
}

TEST_CASE("taking the value of an error is a mistake of ours") {
  Result<int> result = usage_error("bad");
  CHECK_THROWS_AS(result.value(), std::logic_error);
}

}  // namespace error_test
