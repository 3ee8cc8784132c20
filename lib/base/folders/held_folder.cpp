#include "base/folders/held_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

#include "base/files.hpp"
#include "base/folders/beneath.hpp"
#include "base/ids.hpp"
#include "base/text.hpp"

namespace taas {
namespace {

constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr int kHarmless = O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
constexpr mode_t kFolderMode = 0777;
constexpr int kAttempts = 16;    // at a name that comes and goes
constexpr int kMostDepth = 256;  // of folders that are removed: a stack and descriptors have an end

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

std::string kind_of(const struct stat& found) {
  switch (found.st_mode & S_IFMT) {
    case S_IFDIR:
      return "a folder";
    case S_IFIFO:
      return "a named pipe";
    case S_IFSOCK:
      return "a socket";
    case S_IFREG:
      return found.st_nlink > 1 ? fmt::format("a file with {} names, and may be anybody's", found.st_nlink) : "a file";
    default:
      return "a device";
  }
}

/// Of a link itself where the name is empty.
Result<std::string> target_of(const Fd& folder, const std::string& name) {
  std::array<char, PATH_MAX> target{};
  const auto size = ::readlinkat(folder.get(), name.c_str(), target.data(), target.size());
  if (size < 0) return system_error("cannot read the link", errno);
  return std::string(target.data(), static_cast<std::size_t>(size));
}

/// Two bind mounts of one file system differ in nothing else.
std::uint64_t mount_of(const Fd& folder, const std::string& name) {
#ifdef STATX_MNT_ID
  struct statx found {};
  if (::statx(folder.get(), name.c_str(), AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH, STATX_MNT_ID, &found) == 0) {
    return found.stx_mnt_id;
  }
#endif
  struct stat found_by_device {};
  return ::fstatat(folder.get(), name.c_str(), &found_by_device, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) == 0
             ? found_by_device.st_dev
             : 0;
}

Result<std::vector<HeldFolder::Entry>> entries_of(const Fd& folder) {
  std::vector<HeldFolder::Entry> entries;
  Fd readable(::openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::unique_ptr<DIR, CloseFolder> listing(readable ? ::fdopendir(readable.get()) : nullptr);
  if (!listing) return system_error("cannot list it", errno);
  (void)readable.release();
  for (errno = 0; const auto* entry = ::readdir(listing.get()); errno = 0) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    struct stat found {};
    const bool known = entry->d_type != DT_UNKNOWN;
    const bool looked = !known && ::fstatat(folder.get(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0;
    entries.push_back({name, known ? entry->d_type == DT_DIR : looked && S_ISDIR(found.st_mode)});
  }
  if (errno != 0) return system_error("cannot list it", errno);
  return entries;
}

void remove_content_of(const Fd& folder, int depth) {
  const auto entries = entries_of(folder);
  if (!entries || depth == kMostDepth) return;
  for (const auto& [name, is_folder] : *entries) {
    if (!is_folder) {
      ::unlinkat(folder.get(), name.c_str(), 0);
    } else if (const auto inner = open_beneath(folder, name, kFolder)) {
      remove_content_of(*inner, depth + 1);
      ::unlinkat(folder.get(), name.c_str(), AT_REMOVEDIR);
    }
  }
}

std::string last_part(const std::string& name) { return name.substr(name.rfind('/') + 1); }

}  // namespace

Result<HeldFolder> HeldFolder::open(const std::string& path) {
  Fd fd(::open(path.c_str(), kFolder));
  if (fd) return HeldFolder(std::move(fd), path);
  auto error = system_error("cannot open the folder " + path, errno);
  struct stat found {};
  if (::lstat(path.c_str(), &found) == 0 && S_ISLNK(found.st_mode)) error.message += ": it is a symbolic link";
  return error;
}

const Fd& HeldFolder::descriptor() const {
  static const Fd kNone;
  return fd_ ? *fd_ : kNone;
}

Result<HeldFolder> HeldFolder::folder(const std::string& name) const {
  auto opened = open_beneath(descriptor(), name, kFolder);
  if (!opened) return refusal(name, Wanted::kFolder, opened.error().system_errno);
  return HeldFolder(std::move(*opened), path_of(name));
}

/// The folder that a name is in.
Result<HeldFolder> HeldFolder::above(const std::string& name) const {
  const auto slash = name.rfind('/');
  return slash == name.npos ? Result<HeldFolder>(*this) : folder(name.substr(0, slash));
}

Result<HeldFolder> HeldFolder::make_folder(const std::string& name) const {
  auto there = open_beneath(descriptor(), name, kFolder);
  if (there) return HeldFolder(std::move(*there), path_of(name));
  if (there.error().system_errno != ENOENT) return refusal(name, Wanted::kFolder, there.error().system_errno);
  Fd held;
  for (const auto& part : split(name, '/')) {
    const auto& parent = held ? held : descriptor();
    const std::string inner(part);
    const bool failed = ::mkdirat(parent.get(), inner.c_str(), kFolderMode) != 0 && errno != EEXIST;
    if (failed) return refusal(name, Wanted::kFolder, errno);
    auto made = open_beneath(parent, inner, kFolder);
    if (!made) return refusal(name, Wanted::kFolder, made.error().system_errno);
    held = std::move(*made);
  }
  return HeldFolder(std::move(held), path_of(name));
}

/// Looked at before it is opened: opening a pipe tells its writer of a reader, and opening a device may do anything.
Result<Fd> HeldFolder::open_found(const std::string& name, int flags, Wanted wanted) const {
  const auto found = open_beneath(descriptor(), name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (!found) return refusal(name, wanted, found.error().system_errno);
  struct stat status {};
  if (::fstat(found->get(), &status) != 0) return refusal(name, wanted, errno);
  const bool may_be_anybodys = wanted == Wanted::kFileOfOneName && status.st_nlink > 1;
  if (!S_ISREG(status.st_mode) || may_be_anybodys) return refusal(name, wanted, EINVAL);
  const auto open_file = fmt::format("/proc/self/fd/{}", found->get());
  Fd opened(::open(open_file.c_str(), flags | kHarmless));
  if (!opened) return refusal(name, wanted, errno);
  return opened;
}

Result<Fd> HeldFolder::open_to_read(const std::string& name) const { return open_found(name, O_RDONLY, Wanted::kFile); }

Result<std::string> HeldFolder::read_link(const std::string& name) const {
  const auto link = open_beneath(descriptor(), name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  return link ? target_of(*link, "") : link.error();
}

Result<std::string> HeldFolder::read(const std::string& name, std::size_t most) const {
  const auto file = open_to_read(name);
  if (!file) return file.error();
  auto text = read_up_to(*file, most);
  return text ? std::move(text) : std::move(text.error()).with(path_of(name));
}

Result<Fd> HeldFolder::open_to_append(const std::string& name, mode_t mode) const {
  constexpr int kAppend = O_WRONLY | O_APPEND;
  for (int attempt = 1;; ++attempt) {
    auto made = open_beneath(descriptor(), name, kAppend | O_CREAT | O_EXCL | O_NOFOLLOW | kHarmless, mode);
    if (made) return made;
    if (made.error().system_errno != EEXIST) {
      return refusal(name, Wanted::kFileOfOneName, made.error().system_errno);
    }
    auto there = open_found(name, kAppend, Wanted::kFileOfOneName);
    const bool gone = !there && there.error().system_errno == ENOENT;
    if (!gone || attempt == kAttempts) return there;
  }
}

Result<> HeldFolder::replace(const std::string& name, std::string_view content, mode_t mode) const {
  const auto place = above(name);
  if (!place) return place.error();
  const auto& within = place->descriptor();
  const auto last = last_part(name), fresh = "." + last + ".new-" + random_hex(4);
  auto file = open_beneath(within, fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | kHarmless, mode);
  if (!file) return refusal(name, Wanted::kNoFolder, file.error().system_errno);
  auto written = write_all(*file, content);
  if (written && ::renameat(within.get(), fresh.c_str(), within.get(), last.c_str()) == 0) return {};
  auto error = written ? refusal(name, Wanted::kNoFolder, errno) : std::move(written.error()).with(path_of(name));
  ::unlinkat(within.get(), fresh.c_str(), 0);
  return error;
}

Result<std::vector<HeldFolder::Entry>> HeldFolder::entries() const {
  auto found = entries_of(descriptor());
  return found ? std::move(found) : std::move(found.error()).with(path_);
}

bool HeldFolder::has(const std::string& name) const {
  struct stat found {};
  const auto entry = open_beneath(descriptor(), name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  return entry && ::fstat(entry->get(), &found) == 0 && !S_ISDIR(found.st_mode);
}

Result<> HeldFolder::flush(const std::string& name) const {
  for (auto inner = name; !inner.empty();) {
    inner.resize(inner.rfind('/') == inner.npos ? 0 : inner.rfind('/'));
    const auto opened = open_beneath(descriptor(), inner, kFolder);
    const bool flushed = opened && (::fsync(opened->get()) == 0 || errno == EINVAL);
    if (!flushed) return system_error("cannot flush " + path_of(inner), opened ? errno : opened.error().system_errno);
  }
  return {};
}

bool HeldFolder::remove(const std::string& name) const {
  const auto place = above(name);
  return place && ::unlinkat(place->descriptor().get(), last_part(name).c_str(), 0) == 0;
}

bool HeldFolder::remove_folder(const std::string& name) const {
  const auto place = above(name);
  return place && ::unlinkat(place->descriptor().get(), last_part(name).c_str(), AT_REMOVEDIR) == 0;
}

void HeldFolder::remove_content() const { remove_content_of(descriptor(), 0); }

Error HeldFolder::refusal(const std::string& name, Wanted wanted, int system_errno) const {
  const auto what = wanted == Wanted::kFile     ? "cannot read "
                    : wanted == Wanted::kFolder ? "cannot use the folder "
                                                : "cannot write ";
  const auto obstacle = find_obstacle(name, wanted, system_errno);
  if (obstacle.empty()) return system_error(what + path_of(name), system_errno);
  return {ErrorCode::kSystem, system_errno, fmt::format("{}{}: {}", what, path_of(name), obstacle)};
}

/// Only what is strange: the first link or mount, or what is not of the kind that it has to be.
std::string HeldFolder::find_obstacle(const std::string& name, Wanted wanted, int system_errno) const {
  auto shown = path_;
  Fd held;
  const auto parts = split(name, '/');
  for (std::size_t i = 0; fd_ && i < parts.size(); ++i) {
    const std::string part(parts[i]);
    const auto& parent = held ? held : descriptor();
    shown += "/" + part;
    struct stat found {};
    if (::fstatat(parent.get(), part.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) break;
    if (S_ISLNK(found.st_mode)) {
      const auto target = target_of(parent, part);
      return fmt::format("{} is a symbolic link to {}", shown, target ? printable(*target) : "somewhere");
    }
    const bool is_mount = system_errno == EXDEV && mount_of(parent, part) != mount_of(parent, "");
    if (is_mount) return shown + " is a mount of another file system or folder";
    const auto kind = i + 1 == parts.size() ? wanted : Wanted::kFolder;
    const bool fits = kind == Wanted::kFolder     ? S_ISDIR(found.st_mode)
                      : kind == Wanted::kNoFolder ? !S_ISDIR(found.st_mode)
                                                  : S_ISREG(found.st_mode);
    const bool may_be_anybodys = kind == Wanted::kFileOfOneName && found.st_nlink > 1;
    if (!fits || may_be_anybodys) return fmt::format("{} is {}", shown, kind_of(found));
    held = Fd(::openat(parent.get(), part.c_str(), kFolder));
    if (!held) break;
  }
  return {};
}

}  // namespace taas
