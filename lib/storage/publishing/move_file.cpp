#include "storage/publishing/move_file.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/ids.hpp"

namespace taas::storage {
namespace {

constexpr mode_t kSpecial = 07000;  // set-user-id and the like, which no published file has

bool may_be_moved(const StagedFile& staged) {
  struct stat found {};
  return staged.writers() == StagedFile::Writers::kNone && ::fstat(staged.fd().get(), &found) == 0 &&
         found.st_nlink == 1 && (found.st_mode & kSpecial) == 0;
}

/// Whether the name leads to the file that was opened. Who opened it by its staged name, before that was gone, has
/// broken the lease by now.
bool is_still_the_same(const StagedFile& staged, const std::string& path) {
  struct stat found {};
  return ::lstat(path.c_str(), &found) == 0 && found.st_dev == staged.state().device &&
         found.st_ino == staged.state().inode && found.st_nlink == 1 && staged.still_unwritten();
}

}  // namespace

bool move_staged(StagedFile& staged, const std::string& from, const std::string& to) {
  if (!may_be_moved(staged) || ::fsync(staged.fd().get()) != 0) return false;
  auto part = std::filesystem::path(to).parent_path() / (".part-" + random_hex(8));
  if (::rename(from.c_str(), part.c_str()) != 0) return false;
  if (is_still_the_same(staged, part) && ::rename(part.c_str(), to.c_str()) == 0) {
    staged.release();
    return true;
  }
  ::renameat2(AT_FDCWD, part.c_str(), AT_FDCWD, from.c_str(), RENAME_NOREPLACE);
  return false;
}

}  // namespace taas::storage
