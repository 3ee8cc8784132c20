#include "node/process/private_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "node/process/runtime_folder.hpp"

namespace taas::node {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "run-";

Fd open_folder(const std::string& path) {
  return Fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
}

bool is_ours(const Fd& folder) {
  struct stat status {};
  return ::fstat(folder.get(), &status) == 0 && status.st_uid == ::geteuid();
}

/// Those of ours that nobody holds the lock of.
void remove_stale(const std::string& parent) {
  std::error_code failed;
  for (fs::directory_iterator entry(parent, failed), end; !failed && entry != end; entry.increment(failed)) {
    if (!entry->path().filename().string().starts_with(kPrefix)) continue;
    Fd folder = open_folder(entry->path());
    if (!folder || !is_ours(folder) || ::flock(folder.get(), LOCK_EX | LOCK_NB) != 0) continue;
    std::error_code ignored;
    fs::remove_all(entry->path(), ignored);
  }
}

}  // namespace

/// In /tmp first, since paths of Unix sockets hold 107 bytes, and XDG_RUNTIME_DIR goes when its session ends.
Result<PrivateFolder> PrivateFolder::make(const std::map<std::string, std::string>& environment) {
  auto parent = runtime_folder({});
  if (!parent) parent = runtime_folder(environment);
  return parent ? make_in(*parent) : parent.error();
}

Result<PrivateFolder> PrivateFolder::make_in(const std::string& parent) {
  remove_stale(parent);
  const auto path = fmt::format("{}/{}XXXXXX", parent, kPrefix);
  for (int attempt = 0; attempt < 3; ++attempt) {
    auto name = path;
    if (::mkdtemp(name.data()) == nullptr)
      return system_error(fmt::format("cannot make a folder in {}", parent), errno);
    Fd folder = open_folder(name);
    struct stat status {};
    // Between its making and its lock another launcher may have taken it for a stale one.
    bool held = folder && ::flock(folder.get(), LOCK_EX | LOCK_NB) == 0 && ::stat(name.c_str(), &status) == 0;
    if (held) return PrivateFolder(std::move(name), std::move(folder));
  }
  return system_error(fmt::format("cannot keep a folder in {}", parent), EBUSY);
}

PrivateFolder::~PrivateFolder() {
  if (!lock_) return;
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace taas::node
