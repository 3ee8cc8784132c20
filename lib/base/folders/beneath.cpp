#include "base/folders/beneath.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <utility>

namespace taas {
namespace {

constexpr int kInner = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

bool on_same_device(int one, int other) {
  struct stat a {
  }, b{};
  return ::fstat(one, &a) == 0 && ::fstat(other, &b) == 0 && a.st_dev == b.st_dev;
}

/// One component, which may be a folder of another file system: EXDEV then.
Fd open_component(int parent, const std::string& name, int flags, mode_t mode) {
  Fd opened(::openat(parent, name.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, mode));
  if (!opened || on_same_device(parent, opened.get())) return opened;
  opened.reset();
  errno = EXDEV;
  return opened;
}

/// Where the kernel has no openat2, or a filter forbids it.
Fd open_step_by_step(int folder, const std::string& name, int flags, mode_t mode) {
  const std::filesystem::path path(name);
  Fd inner;
  int parent = folder;
  for (const auto& part : path.parent_path()) {
    auto next = open_component(parent, part.string(), kInner, 0);
    if (!next) return next;
    inner = std::move(next);
    parent = inner.get();
  }
  return open_component(parent, path.filename().string(), flags, mode);
}

Fd open_resolved(int folder, const std::string& name, int flags, mode_t mode) {
  open_how how{};
  const int unblocked = (flags & O_PATH) != 0 ? 0 : O_NONBLOCK;  // the two together are an error
  how.flags = static_cast<std::uint64_t>(flags | unblocked | O_CLOEXEC);
  how.mode = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? mode : 0;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;
  for (;;) {
    Fd opened(static_cast<int>(::syscall(SYS_openat2, folder, name.c_str(), &how, sizeof how)));
    if (opened || (errno != EAGAIN && errno != EINTR)) {
      const bool no_such_call = !opened && (errno == ENOSYS || errno == EPERM);
      return no_such_call ? open_step_by_step(folder, name, flags, mode) : std::move(opened);
    }
  }
}

Result<Fd> make_inner(const Fd& parent, const std::string& name) {
  if (::mkdirat(parent.get(), name.c_str(), 0777) != 0 && errno != EEXIST) {
    return system_error("cannot create the folder " + name, errno);
  }
  Fd folder = open_component(parent.get(), name, kInner, 0);
  if (!folder) return system_error("cannot open the folder " + name, errno);
  return folder;
}

}  // namespace

bool is_name_below(const std::string& name) {
  if (name.empty() || name.size() >= PATH_MAX || name.front() == '/' || name.back() == '/') return false;
  if (name.find('\0') != std::string::npos) return false;
  const auto parts = std::filesystem::path(name);
  return std::all_of(parts.begin(), parts.end(), [](const auto& part) {
    return !part.empty() && part != "." && part != ".." && part.native().size() <= NAME_MAX;
  });
}

Result<Fd> open_beneath(const Fd& folder, const std::string& name, int flags, mode_t mode) {
  if (!name.empty() && !is_name_below(name)) return unavailable_error(name + ": not a name below a folder");
  Fd opened = name.empty() ? Fd(::openat(folder.get(), ".", flags | O_CLOEXEC))
                           : open_resolved(folder.get(), name, flags, mode);
  if (!opened) return system_error("cannot open " + name, errno);
  return opened;
}

Result<PlaceBelow> open_place_below(const Fd& top, const std::string& name, Missing folders) {
  if (!is_name_below(name)) return unavailable_error(name + ": not a name below a folder");
  const std::filesystem::path path(name);
  auto parent = open_beneath(top, path.parent_path().string(), kInner);
  const bool make = !parent && parent.error().system_errno == ENOENT && folders == Missing::kMake;
  if (!parent && !make) return std::move(parent.error()).with("cannot publish " + name);
  if (parent) return PlaceBelow{std::move(*parent), path.filename().string()};
  auto inner = open_beneath(top, "", kInner);
  if (!inner) return inner.error();
  for (const auto& part : path.parent_path()) {
    auto next = make_inner(*inner, part.string());
    if (!next) return std::move(next.error()).with("cannot publish " + name);
    *inner = std::move(*next);
  }
  return PlaceBelow{std::move(*inner), path.filename().string()};
}

Result<PlaceBelow> open_place_below(const std::string& top, const std::string& name, Missing folders) {
  auto folder = open_folder(top);
  if (!folder) return folder.error();
  return open_place_below(*folder, name, folders);
}

Result<Fd> open_folder(const std::string& path) {
  Fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return system_error("cannot open the folder " + path, errno);
  return folder;
}

std::string describe_beneath(const Fd& folder, const std::string& name) {
  struct stat found {};
  if (::fstatat(folder.get(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) != 0) return "nothing";
  if (S_ISDIR(found.st_mode)) return "another folder";
  if (!S_ISLNK(found.st_mode)) return S_ISREG(found.st_mode) ? "a file" : "something that is neither file nor folder";
  std::array<char, PATH_MAX> target{};
  const auto size = ::readlinkat(folder.get(), name.c_str(), target.data(), target.size());
  return size < 0 ? "a symbolic link" : "a symbolic link to " + std::string(target.data(), static_cast<size_t>(size));
}

}  // namespace taas
