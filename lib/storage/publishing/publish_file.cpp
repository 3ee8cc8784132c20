#include "storage/publishing/publish_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <vector>

#include "base/files.hpp"
#include "base/folders/beneath.hpp"
#include "base/ids.hpp"
#include "storage/publishing/part_file.hpp"

namespace taas::storage {
namespace {

constexpr mode_t kSpecial = 07000;        // set-user-id and the like, which no published file has
constexpr std::size_t kChunk = 4u << 20;  // small enough that a writer who wants the file back waits milliseconds

enum class Copied { kAll, kInterrupted };

Result<Copied> copy_by_hand(const StagedFile& from, const Fd& to) {
  std::vector<char> chunk(kChunk);
  for (;;) {
    if (!from.still_unwritten()) return Copied::kInterrupted;
    auto count = ::read(from.fd().get(), chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error("cannot read", errno);
    if (count == 0) return Copied::kAll;
    if (auto done = write_all(to, {chunk.data(), static_cast<std::size_t>(count)}); !done) return done.error();
  }
}

/// The cheapest way that the file system knows: shared blocks, a copy inside the kernel, a copy through here.
Result<Copied> copy_content(const StagedFile& from, const Fd& to) {
  if (::ioctl(to.get(), FICLONE, from.fd().get()) == 0) return Copied::kAll;
  bool begun = false;
  for (;;) {
    if (!from.still_unwritten()) return Copied::kInterrupted;
    auto count = ::copy_file_range(from.fd().get(), nullptr, to.get(), nullptr, kChunk, 0);
    if (count < 0 && errno == EINTR) continue;
    // Between file systems, or where the call is not known: nothing was copied yet. Some special files copy as empty.
    if (!begun && count <= 0 && (count == 0 || (errno != ENOSPC && errno != EDQUOT && errno != EIO))) {
      return copy_by_hand(from, to);
    }
    if (count < 0) return system_error("cannot copy", errno);
    if (count == 0) return Copied::kAll;
    begun = true;
  }
}

std::string new_part_name() { return ".part-" + random_hex(8); }

bool may_be_moved(const StagedFile& staged) {
  struct stat found {};
  return staged.writers() == StagedFile::Writers::kNone && ::fstat(staged.fd().get(), &found) == 0 &&
         found.st_nlink == 1 && (found.st_mode & kSpecial) == 0;
}

/// Whether the name leads to the file that was opened. Who opened it by its staged name, before that was gone, has
/// broken the lease by now.
bool is_still_the_same(const StagedFile& staged, const PlaceBelow& place) {
  struct stat found {};
  return ::fstatat(place.folder.get(), place.name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0 &&
         found.st_dev == staged.state().device && found.st_ino == staged.state().inode && found.st_nlink == 1 &&
         staged.still_unwritten();
}

bool rename_between(const PlaceBelow& from, const PlaceBelow& to, unsigned flags = 0) {
  return ::renameat2(from.folder.get(), from.name.c_str(), to.folder.get(), to.name.c_str(), flags) == 0;
}

/// Gives the staged file itself its final name, so that no second copy needs room. For a file that nobody writes by the
/// kernel's word, that has no other name, and that lies in the same file system; false: nothing has changed, and it has
/// to be copied.
bool move_staged(StagedFile& staged, const PlaceBelow& from, const PlaceBelow& to) {
  if (!may_be_moved(staged) || ::fsync(staged.fd().get()) != 0) return false;
  const PlaceBelow part{Fd(::fcntl(to.folder.get(), F_DUPFD_CLOEXEC, 0)), new_part_name()};
  if (!part.folder || !rename_between(from, part)) return false;
  if (is_still_the_same(staged, part) && rename_between(part, to)) {
    staged.release();
    return true;
  }
  rename_between(part, from, RENAME_NOREPLACE);
  return false;
}

Result<Outcome> publish_link(const Publication& publication) {
  auto points_to = publication.staging.read_link(publication.name);
  if (!points_to) return Outcome::kGone;
  const auto staging = publication.staging.path_of("");
  if (points_to->rfind(staging, 0) == 0) points_to->replace(0, staging.size(), publication.files.path_of(""));
  auto target = open_place_below(publication.files.descriptor(), publication.name, Missing::kMake);
  if (!target) return target.error();
  const auto part = new_part_name();
  const int folder = target->folder.get();
  const bool linked = ::symlinkat(points_to->c_str(), folder, part.c_str()) == 0;
  if (!linked || ::renameat(folder, part.c_str(), folder, target->name.c_str()) != 0) {
    auto error = system_error("cannot publish the link " + publication.files.path_of(publication.name), errno);
    if (linked) ::unlinkat(folder, part.c_str(), 0);
    return error;
  }
  if (auto flushed = publication.files.flush(publication.name); !flushed) return flushed.error();
  return Outcome::kPublished;
}

/// A later agent knows by the time whether a staged file is the one that was published.
void keep_time(const StagedFile& staged, const Fd& copy) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const auto modified = staged.state().modified_ns;
  const std::array<timespec, 2> times{timespec{0, UTIME_OMIT}, timespec{modified / kSecond, modified % kSecond}};
  ::futimens(copy.get(), times.data());
}

Result<Outcome> copy_staged(StagedFile& staged, const Publication& publication, PlaceBelow target) {
  const auto shown = publication.files.path_of(publication.name);
  PartFile part(std::move(target.folder), staged.mode());
  if (!part.fd()) return system_error("cannot create " + shown, errno);
  auto copied = copy_content(staged, part.fd());
  if (!copied) return std::move(copied.error()).with("cannot publish " + shown);
  if (*copied == Copied::kInterrupted || !staged.still_unwritten()) return Outcome::kChanged;
  staged.release();
  keep_time(staged, part.fd());
  if (auto renamed = part.flush_and_rename(target.name, shown); !renamed) return renamed.error();
  return Outcome::kPublished;
}

Result<Outcome> publish_content(StagedFile staged, const Publication& publication) {
  auto target = open_place_below(publication.files.descriptor(), publication.name, Missing::kMake);
  if (!target) return target.error();
  auto source = open_place_below(publication.staging.descriptor(), publication.name, Missing::kRefuse);
  if (!publication.at_end || !source || !move_staged(staged, *source, *target)) {
    auto copied = copy_staged(staged, publication, std::move(*target));
    if (!copied || *copied != Outcome::kPublished) return copied;
  }
  if (auto flushed = publication.files.flush(publication.name); !flushed) return flushed.error();
  return Outcome::kPublished;
}

}  // namespace

bool is_published(const HeldFolder& files, const std::string& name, const FileState& staged) {
  auto entry = open_beneath(files.descriptor(), name, O_PATH | O_NOFOLLOW);
  struct stat found {};
  if (!entry || ::fstat(entry->get(), &found) != 0 || !S_ISREG(found.st_mode)) return false;
  const auto published = state_of(found);
  return published.size == staged.size && published.modified_ns == staged.modified_ns;
}

Result<Outcome> publish_file(const Publication& publication) {
  if (publication.link) return publish_link(publication);
  auto staged = StagedFile::open(publication.staging, publication.name, publication.refusal);
  if (!staged && staged.error().system_errno == ENOENT) return Outcome::kGone;
  if (!staged) return staged.error();
  if (staged->writers() == StagedFile::Writers::kOpen) return Outcome::kBusy;
  if (staged->state() != publication.seen) return Outcome::kChanged;
  return publish_content(std::move(*staged), publication);
}

Result<> flush_place(const HeldFolder& files) {
  Fd folder = Fd(::openat(files.descriptor().get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int above = 0; above < 3; ++above) {  // itself, the run's folder, and where that has its name
    const bool flushed = folder && (::fsync(folder.get()) == 0 || errno == EINVAL);
    if (!flushed) return system_error("cannot flush the folders above " + files.path(), errno);
    folder = Fd(::openat(folder.get(), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  return {};
}

}  // namespace taas::storage
