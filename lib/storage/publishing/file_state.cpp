#include "storage/publishing/file_state.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "base/ids.hpp"

namespace taas::storage {
namespace {

std::int64_t nanoseconds(const timespec& time) { return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

FileState state_of(const struct stat& found) {
  return {found.st_dev, found.st_ino, found.st_size, nanoseconds(found.st_mtim), nanoseconds(found.st_ctim)};
}

/// A read lease is granted only while no descriptor is open for writing, and the next such open() is held up until the
/// lease is given back. The notice of that is a signal: SIGURG is one that ends nobody.
StagedFile::Writers take_lease(const Fd& fd, Refusal refusal) {
  ::fcntl(fd.get(), F_SETSIG, SIGURG);
  if (::fcntl(fd.get(), F_SETLEASE, F_RDLCK) == 0) return StagedFile::Writers::kNone;
  bool somebody_writes = errno == EAGAIN && refusal == Refusal::kMeansWriters;
  return somebody_writes ? StagedFile::Writers::kOpen : StagedFile::Writers::kUnknown;
}

/// Their servers decide file by file whether a lease is granted, so that one granted says nothing about the next.
bool is_network_file_system(const std::string& path) {
  constexpr std::array<unsigned, 4> kMagicNumbers{0x6969, 0x517b, 0xff534d42, 0xfe534d42};  // NFS, SMB, CIFS, SMB 2
  struct statfs found {};
  if (::statfs(path.c_str(), &found) != 0) return true;
  return std::find(kMagicNumbers.begin(), kMagicNumbers.end(), static_cast<unsigned>(found.f_type)) !=
         kMagicNumbers.end();
}

}  // namespace

Refusal learn_refusal(const std::string& folder) {
  if (is_network_file_system(folder)) return Refusal::kMeansNothing;
  auto path = folder + "/.lease-" + random_hex(8);
  Fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)).reset();
  auto file = StagedFile::open(path);
  bool granted = file && file->writers() == StagedFile::Writers::kNone;
  ::unlink(path.c_str());
  return granted ? Refusal::kMeansWriters : Refusal::kMeansNothing;
}

Result<FileState> link_state(const std::string& path) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) return system_error("cannot examine " + path, errno);
  if (!S_ISLNK(found.st_mode)) return system_error("cannot publish " + path, EINVAL);
  return state_of(found);
}

Result<StagedFile> StagedFile::open(const std::string& path, Refusal refusal) {
  StagedFile file;
  file.fd_ = Fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file.fd_) return system_error("cannot open " + path, errno);
  struct stat found {};
  if (::fstat(file.fd_.get(), &found) != 0) return system_error("cannot examine " + path, errno);
  if (!S_ISREG(found.st_mode)) return system_error("cannot publish " + path, EINVAL);
  file.writers_ = take_lease(file.fd_, refusal);
  if (::fstat(file.fd_.get(), &found) != 0) return system_error("cannot examine " + path, errno);
  file.state_ = state_of(found);
  file.mode_ = found.st_mode & 0777;
  return file;
}

bool StagedFile::still_unwritten() const {
  if (writers_ == Writers::kNone) return ::fcntl(fd_.get(), F_GETLEASE) == F_RDLCK;
  struct stat found {};
  return ::fstat(fd_.get(), &found) == 0 && state_of(found) == state_;
}

}  // namespace taas::storage
