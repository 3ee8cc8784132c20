#include "storage/publishing/publish_file.hpp"

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
#include "storage/publishing/move_file.hpp"
#include "storage/publishing/part_file.hpp"

namespace taas::storage {
namespace {

namespace fs = std::filesystem;

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
  if (auto flushed = flush_folders(target.parent_path().string(), publication.files); !flushed) return flushed.error();
  return Outcome::kPublished;
}

Result<Outcome> publish_content(StagedFile staged, const Publication& publication) {
  auto target = fs::path(publication.files) / publication.name;
  if (auto made = make_folder(target.parent_path()); !made) return made.error();
  if (publication.at_end && move_staged(staged, publication.staging + "/" + publication.name, target.string())) {
    if (auto flushed = flush_folders(target.parent_path().string(), publication.files); !flushed)
      return flushed.error();
    return Outcome::kPublished;
  }
  PartFile part(Fd(::open(target.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)), staged.mode());
  if (!part.fd()) return system_error("cannot create " + target.string(), errno);
  auto copied = copy_content(staged, part.fd());
  if (!copied) return std::move(copied.error()).with("cannot publish " + target.string());
  if (*copied == Copied::kInterrupted || !staged.still_unwritten()) return Outcome::kChanged;
  staged.release();
  if (auto renamed = part.flush_and_rename(target.filename().string(), target.string()); !renamed)
    return renamed.error();
  if (auto flushed = flush_folders(target.parent_path().string(), publication.files); !flushed) return flushed.error();
  return Outcome::kPublished;
}

}  // namespace

Result<> flush_folders(const std::string& inner, const std::string& outer) {
  const fs::path top(outer);
  for (fs::path folder(inner);; folder = folder.parent_path()) {
    Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd || (::fsync(fd.get()) != 0 && errno != EINVAL))
      return system_error("cannot flush " + folder.string(), errno);
    if (folder == top || !folder.has_relative_path()) return {};
  }
}

Result<Outcome> publish_file(const Publication& publication) {
  if (publication.link) return publish_link(publication);
  auto staged = StagedFile::open(publication.staging + "/" + publication.name, publication.refusal);
  if (!staged && staged.error().system_errno == ENOENT) return Outcome::kGone;
  if (!staged) return staged.error();
  if (staged->writers() == StagedFile::Writers::kOpen) return Outcome::kBusy;
  if (staged->state() != publication.seen) return Outcome::kChanged;
  return publish_content(std::move(*staged), publication);
}

Result<> flush_place(const std::string& files) {
  auto run = fs::path(files).parent_path();
  return flush_folders(files, run.parent_path().string());
}

}  // namespace taas::storage
