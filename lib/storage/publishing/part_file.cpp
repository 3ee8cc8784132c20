#include "storage/publishing/part_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/ids.hpp"

namespace taas::storage {

PartFile::PartFile(Fd folder, unsigned mode) : folder_(std::move(folder)), part_(".part-" + random_hex(8)) {
  fd_ = Fd(::openat(folder_.get(), ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, mode));
  if (fd_) return;
  fd_ = Fd(::openat(folder_.get(), part_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  named_ = static_cast<bool>(fd_);
}

PartFile::~PartFile() {
  if (named_) ::unlinkat(folder_.get(), part_.c_str(), 0);
}

bool PartFile::give_name(const std::string& name) const {
  auto open_file = "/proc/self/fd/" + std::to_string(fd_.get());
  return ::linkat(AT_FDCWD, open_file.c_str(), folder_.get(), name.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

Result<> PartFile::flush_and_rename(const std::string& name, const std::string& shown) {
  if (::fsync(fd_.get()) != 0) return system_error("cannot flush " + shown, errno);
  if (!named_ && give_name(name)) return {};
  if (!named_ && errno == EEXIST) named_ = give_name(part_);  // only rename() replaces
  if (!named_ || ::renameat(folder_.get(), part_.c_str(), folder_.get(), name.c_str()) != 0) {
    return system_error("cannot publish " + shown, errno);
  }
  named_ = false;
  return {};
}

}  // namespace taas::storage
