#pragma once

#include <sys/resource.h>

#include <csignal>

namespace taas::test {

/// No file of this process grows beyond a size for a while, as if the disk were full (EFBIG in place of ENOSPC).
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    before_ = std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &limits_);
    rlimit small = limits_;
    small.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &small);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &limits_);
    std::signal(SIGXFSZ, before_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit limits_{};
  void (*before_)(int) = nullptr;
};

}  // namespace taas::test
