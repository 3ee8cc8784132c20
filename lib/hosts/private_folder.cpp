#include "hosts/private_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

namespace taas::hosts {
namespace {

namespace fs = std::filesystem;

constexpr const char* kParent = "/tmp";  // paths of Unix sockets hold 107 bytes: a user's own TMPDIR may be longer
constexpr const char* kPrefix = "taas-run-";

Fd open_folder(const std::string& path) {
  return Fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
}

bool is_ours(const Fd& folder) {
  struct stat status {};
  return ::fstat(folder.get(), &status) == 0 && status.st_uid == ::geteuid();
}

/// Those of ours that nobody holds the lock of.
void remove_stale() {
  std::error_code failed;
  for (fs::directory_iterator entry(kParent, failed), end; !failed && entry != end; entry.increment(failed)) {
    if (!entry->path().filename().string().starts_with(kPrefix)) continue;
    Fd folder = open_folder(entry->path());
    if (!folder || !is_ours(folder) || ::flock(folder.get(), LOCK_EX | LOCK_NB) != 0) continue;
    std::error_code ignored;
    fs::remove_all(entry->path(), ignored);
  }
}

}  // namespace

Result<PrivateFolder> PrivateFolder::make() {
  remove_stale();
  const auto path = fmt::format("{}/{}XXXXXX", kParent, kPrefix);
  for (int attempt = 0; attempt < 3; ++attempt) {
    auto name = path;
    if (::mkdtemp(name.data()) == nullptr)
      return system_error(fmt::format("cannot make a folder in {}", kParent), errno);
    Fd folder = open_folder(name);
    struct stat status {};
    // Between its making and its lock another launcher may have taken it for a stale one.
    bool held = folder && ::flock(folder.get(), LOCK_EX | LOCK_NB) == 0 && ::stat(name.c_str(), &status) == 0;
    if (held) return PrivateFolder(std::move(name), std::move(folder));
  }
  return system_error(fmt::format("cannot keep a folder in {}", kParent), EBUSY);
}

PrivateFolder::~PrivateFolder() {
  if (!lock_) return;
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace taas::hosts
