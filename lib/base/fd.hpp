#pragma once

#include <utility>

#include "base/error.hpp"

namespace taas {

/// Owns one file descriptor and closes it. -1 means none.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept;
  ~Fd() { reset(); }

  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] explicit operator bool() const { return fd_ >= 0; }
  /// Gives the descriptor up to the caller.
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }
  void reset();

 private:
  int fd_ = -1;
};

/// Both ends of a pipe, close-on-exec.
struct Pipe {
  Fd read;
  Fd write;
};
Result<Pipe> make_pipe();

}  // namespace taas
