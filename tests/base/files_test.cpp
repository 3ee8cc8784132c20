#include "base/files.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
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

TEST_CASE("of what somebody else may have put there only a regular file is read, as far as wanted") {
  std::string folder = "/tmp/taas-files-XXXXXX";
  REQUIRE(::mkdtemp(folder.data()) != nullptr);
  const auto file = folder + "/file";
  const auto fifo = folder + "/fifo";
  CHECK(write_all(Fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)), std::string(10000, 'x')).has_value());
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  CHECK(read_regular_file(file, 100).value() == std::string(100, 'x'));
  CHECK(read_regular_file(file, 20000).value().size() == 10000);
  CHECK(read_regular_file(folder + "/missing", 100).error().system_errno == ENOENT);
  for (const auto& other : {fifo, folder, std::string("/dev/zero")}) {
    CHECK_THAT(read_regular_file(other, 100).error().message, ContainsSubstring(other + " is not a regular file"));
  }
  ::unlink(file.c_str());
  ::unlink(fifo.c_str());
  ::rmdir(folder.c_str());
}

}  // namespace files_test
