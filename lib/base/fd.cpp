#include "base/fd.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace taas {

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void Fd::reset() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return system_error("cannot create a pipe", errno);
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

}  // namespace taas
