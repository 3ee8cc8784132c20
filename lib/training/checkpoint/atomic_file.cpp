#include "training/checkpoint/atomic_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/files.hpp"
#include "taas/error.hpp"

namespace taas {
namespace {

constexpr std::size_t kBuffer = 1 << 20;

/// Whoever writes a file holds its lock. One that can be had belongs to a process that was killed meanwhile.
void remove_abandoned(const std::filesystem::path& file) {
  if (const Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC)); fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0)
    ::unlink(file.c_str());
}

void remove_all_abandoned(const std::filesystem::path& path) {
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  const auto begin = path.filename().string() + kTemporarySuffix;
  std::error_code unreadable;
  for (const auto& entry : std::filesystem::directory_iterator(folder, unreadable)) {
    if (entry.path().filename().string().starts_with(begin)) remove_abandoned(entry.path());
  }
}

}  // namespace

void sync_folder_of(const std::string& path) {
  auto folder = std::filesystem::path(path).parent_path();
  Fd fd(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd && (::fsync(fd.get()) == 0 || errno == EINVAL)) return;  // EINVAL: a file system without that notion
  throw CheckpointError("cannot sync the folder of " + path + ": " + std::generic_category().message(errno));
}

AtomicFile::AtomicFile(std::string path)
    : path_(std::move(path)),
      temporary_(path_ + kTemporarySuffix + std::to_string(::getpid())),
      fd_(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
  if (!fd_) fail(errno);
  ::flock(fd_.get(), LOCK_EX | LOCK_NB);  // a file system without locks has nothing removed
  remove_all_abandoned(path_);
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::string_view bytes) {
  size_ += bytes.size();
  if (buffer_.size() + bytes.size() > kBuffer) flush_buffer();
  if (bytes.size() > kBuffer) return flush(bytes);
  buffer_ += bytes;
}

void AtomicFile::flush(std::string_view bytes) {
  if (failure_ != 0) return;
  auto written = write_all(fd_, bytes);
  if (!written) failure_ = written.error().system_errno;
}

void AtomicFile::flush_buffer() {
  flush(buffer_);
  buffer_.clear();
}

void AtomicFile::publish() {
  flush_buffer();
  if (failure_ != 0) fail(failure_);
  if (::fsync(fd_.get()) != 0) fail(errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail(errno);
  temporary_.clear();
  sync_folder_of(path_);
}

void AtomicFile::fail(int cause) const {
  throw CheckpointError("cannot write " + path_ + ": " + std::generic_category().message(cause));
}

}  // namespace taas
