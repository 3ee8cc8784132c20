#include "training/checkpoint/atomic_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "base/fd.hpp"
#include "base/files.hpp"
#include "taas/error.hpp"

namespace taas {
namespace {

/// The file beside the final one until it is complete; removes itself unless it was renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& path) : path_(path + ".tmp-" + std::to_string(::getpid())), final_(path) {
    fd_ = Fd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!fd_) fail(errno);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }

  void write(std::string_view bytes) {
    auto written = write_all(fd_, bytes);
    if (!written) fail(written.error().system_errno);
    if (::fsync(fd_.get()) != 0) fail(errno);
  }

  void rename() {
    if (::rename(path_.c_str(), final_.c_str()) != 0) fail(errno);
    path_.clear();
  }

 private:
  [[noreturn]] void fail(int cause) const {
    throw CheckpointError("cannot write " + final_ + ": " + std::generic_category().message(cause));
  }

  std::string path_;
  std::string final_;
  Fd fd_;
};

/// Makes the rename itself survive a power cut.
void sync_folder_of(const std::string& path) {
  auto folder = std::filesystem::path(path).parent_path();
  Fd fd(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd && (::fsync(fd.get()) == 0 || errno == EINVAL)) return;  // EINVAL: a file system without that notion
  throw CheckpointError("cannot sync the folder of " + path + ": " + std::generic_category().message(errno));
}

}  // namespace

void write_file_atomically(const std::string& path, std::string_view bytes) {
  TemporaryFile file(path);
  file.write(bytes);
  file.rename();
  sync_folder_of(path);
}

}  // namespace taas
