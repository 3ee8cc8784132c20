#include "storage/publishing/file_state.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "base/folders/beneath.hpp"
#include "base/ids.hpp"

namespace taas::storage {
namespace {

std::int64_t nanoseconds(const timespec& time) { return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

/// A read lease is granted only while no descriptor is open for writing, and the next such open() is held up until the
/// lease is given back. The notice of that is a signal: SIGURG is one that ends nobody.
StagedFile::Writers take_lease(const Fd& fd, Refusal refusal) {
  ::fcntl(fd.get(), F_SETSIG, SIGURG);
  if (::fcntl(fd.get(), F_SETLEASE, F_RDLCK) == 0) return StagedFile::Writers::kNone;
  bool somebody_writes = errno == EAGAIN && refusal == Refusal::kMeansWriters;
  return somebody_writes ? StagedFile::Writers::kOpen : StagedFile::Writers::kUnknown;
}

/// Their servers decide file by file whether a lease is granted, so that one granted says nothing about the next.
bool is_network_file_system(const HeldFolder& folder) {
  constexpr std::array<unsigned, 4> kMagicNumbers{0x6969, 0x517b, 0xff534d42, 0xfe534d42};  // NFS, SMB, CIFS, SMB 2
  struct statfs found {};
  if (::fstatfs(folder.descriptor().get(), &found) != 0) return true;
  return std::find(kMagicNumbers.begin(), kMagicNumbers.end(), static_cast<unsigned>(found.f_type)) !=
         kMagicNumbers.end();
}

}  // namespace

FileState state_of(const struct stat& found) {
  return {found.st_dev, found.st_ino, found.st_size, nanoseconds(found.st_mtim), nanoseconds(found.st_ctim)};
}

Refusal learn_refusal(const HeldFolder& folder) {
  if (is_network_file_system(folder)) return Refusal::kMeansNothing;
  auto name = ".lease-" + random_hex(8);
  Fd(::openat(folder.descriptor().get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)).reset();
  auto file = StagedFile::open(folder, name);
  bool granted = file && file->writers() == StagedFile::Writers::kNone;
  folder.remove(name);
  return granted ? Refusal::kMeansWriters : Refusal::kMeansNothing;
}

Result<FileState> link_state(const HeldFolder& folder, const std::string& name) {
  auto entry = open_beneath(folder.descriptor(), name, O_PATH | O_NOFOLLOW);
  if (!entry) return std::move(entry.error()).with("cannot examine " + folder.path_of(name));
  struct stat found {};
  if (::fstat(entry->get(), &found) != 0) return system_error("cannot examine " + folder.path_of(name), errno);
  if (!S_ISLNK(found.st_mode)) return system_error("cannot publish " + folder.path_of(name), EINVAL);
  return state_of(found);
}

Result<StagedFile> StagedFile::open(const HeldFolder& folder, const std::string& name, Refusal refusal) {
  StagedFile file;
  auto opened = folder.open_to_read(name);
  if (!opened) return opened.error();
  file.fd_ = std::move(*opened);
  struct stat found {};
  file.writers_ = take_lease(file.fd_, refusal);
  if (::fstat(file.fd_.get(), &found) != 0) return system_error("cannot examine " + folder.path_of(name), errno);
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
