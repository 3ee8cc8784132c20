#include "storage/publish_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <vector>

#include "base/files.hpp"
#include "base/ids.hpp"

namespace taas::storage {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kChunk = 4u << 20;  // small enough that a writer who wants the file back waits milliseconds

/// A new file that is removed again unless it is given its final name.
class PartFile {
 public:
  PartFile(const fs::path& folder, unsigned mode) : path_((folder / (".part-" + random_hex(8))).string()) {
    fd_ = Fd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  }
  ~PartFile() {
    if (fd_) ::unlink(path_.c_str());
  }
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  [[nodiscard]] const Fd& fd() const { return fd_; }
  Result<> flush_and_rename(const std::string& target) {
    if (::fsync(fd_.get()) != 0) return system_error("cannot flush " + target, errno);
    if (::rename(path_.c_str(), target.c_str()) != 0) return system_error("cannot publish " + target, errno);
    fd_.reset();
    return {};
  }

 private:
  std::string path_;
  Fd fd_;
};

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

/// Makes new names in these folders last, from the file's own folder up to the one of published files.
Result<> flush_folders(fs::path folder, const fs::path& top) {
  for (;; folder = folder.parent_path()) {
    Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd || (::fsync(fd.get()) != 0 && errno != EINVAL))
      return system_error("cannot flush " + folder.string(), errno);
    if (folder == top || !folder.has_relative_path()) return {};
  }
}

Result<> make_folder(const fs::path& folder) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) return system_error("cannot create the folder " + folder.string(), failure.value());
  return {};
}

Result<Outcome> publish_link(const Publication& publication) {
  std::error_code failure;
  auto points_to = fs::read_symlink(publication.staging + "/" + publication.name, failure).string();
  if (failure) return Outcome::kGone;
  if (points_to.rfind(publication.staging + "/", 0) == 0) {
    points_to.replace(0, publication.staging.size(), publication.files);
  }
  auto target = fs::path(publication.files) / publication.name;
  if (auto made = make_folder(target.parent_path()); !made) return made.error();
  auto part = target.parent_path() / (".part-" + random_hex(8));
  fs::create_symlink(points_to, part, failure);
  if (!failure) fs::rename(part, target, failure);
  if (failure) return system_error("cannot publish the link " + target.string(), failure.value());
  if (auto flushed = flush_folders(target.parent_path(), publication.files); !flushed) return flushed.error();
  return Outcome::kPublished;
}

Result<Outcome> publish_content(StagedFile staged, const Publication& publication) {
  auto target = fs::path(publication.files) / publication.name;
  if (auto made = make_folder(target.parent_path()); !made) return made.error();
  PartFile part(target.parent_path(), staged.mode());
  if (!part.fd()) return system_error("cannot create " + target.string(), errno);
  auto copied = copy_content(staged, part.fd());
  if (!copied) return std::move(copied.error()).with("cannot publish " + target.string());
  if (*copied == Copied::kInterrupted || !staged.still_unwritten()) return Outcome::kChanged;
  staged.release();
  if (auto renamed = part.flush_and_rename(target.string()); !renamed) return renamed.error();
  if (auto flushed = flush_folders(target.parent_path(), publication.files); !flushed) return flushed.error();
  return Outcome::kPublished;
}

}  // namespace

Result<Outcome> publish_file(const Publication& publication) {
  if (publication.link) return publish_link(publication);
  auto staged = StagedFile::open(publication.staging + "/" + publication.name);
  if (!staged && staged.error().system_errno == ENOENT) return Outcome::kGone;
  if (!staged) return staged.error();
  if (staged->writers() == StagedFile::Writers::kOpen) {
    if (!publication.at_end) return Outcome::kBusy;
    return unavailable_error("cannot publish " + publication.name + ": a process still has it open for writing");
  }
  if (staged->state() != publication.seen) return Outcome::kChanged;
  return publish_content(std::move(*staged), publication);
}

Result<> flush_place(const std::string& files) {
  auto run = fs::path(files).parent_path();
  return flush_folders(files, run.parent_path());
}

}  // namespace taas::storage
