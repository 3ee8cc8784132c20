#include "base/files.hpp"

#include <stdlib.h>
#include <unistd.h>

#include <cerrno>

#include "catch.hpp"

namespace files_test {

using namespace taas;

TEST_CASE("what is written whole is read whole") {
  std::string path = "/tmp/taas-files-XXXXXX";
  Fd file(::mkstemp(path.data()));
  REQUIRE(file);
  std::string text(100000, 'x');
  CHECK(write_all(file, text).has_value());
  auto read = read_file(path);
  REQUIRE(read.has_value());
  CHECK(*read == text);
  ::unlink(path.c_str());
}

TEST_CASE("a file that cannot be read or written is an error with its errno") {
  auto missing = read_file("/no/such/file");
  REQUIRE(missing.has_error());
  CHECK(missing.error().system_errno == ENOENT);
  CHECK_THAT(missing.error().message, ContainsSubstring("/no/such/file"));
  auto refused = write_all(Fd(::dup(0)), "");
  CHECK(refused.has_value());
  CHECK(write_all(Fd(), "x").error().system_errno == EBADF);
}

}  // namespace files_test
