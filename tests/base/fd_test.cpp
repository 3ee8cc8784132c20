#include "base/fd.hpp"

#include <fcntl.h>
#include <unistd.h>

#include "catch.hpp"

namespace fd_test {

using namespace taas;

namespace {

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) != -1; }

}  // namespace

TEST_CASE("a descriptor is closed by its owner, once") {
  auto pipe = make_pipe();
  REQUIRE(pipe.has_value());
  int number = pipe->read.get();
  {
    Fd owner = std::move(pipe->read);
    CHECK_FALSE(pipe->read);
    CHECK(is_open(number));
  }
  CHECK_FALSE(is_open(number));
}

TEST_CASE("assignment closes what was held; release gives it up") {
  auto pipe = make_pipe();
  REQUIRE(pipe.has_value());
  int read = pipe->read.get();
  pipe->read = std::move(pipe->write);
  CHECK_FALSE(is_open(read));
  int write = pipe->read.release();
  CHECK_FALSE(pipe->read);
  CHECK(is_open(write));
  ::close(write);
}

TEST_CASE("a pipe is not inherited by programs") {
  auto pipe = make_pipe();
  REQUIRE(pipe.has_value());
  CHECK((::fcntl(pipe->read.get(), F_GETFD) & FD_CLOEXEC) != 0);
  CHECK((::fcntl(pipe->write.get(), F_GETFD) & FD_CLOEXEC) != 0);
}

}  // namespace fd_test
