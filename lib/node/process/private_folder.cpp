#include "node/process/private_folder.hpp"

#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/ids.hpp"
#include "node/process/runtime_folder.hpp"

namespace taas::node {
namespace {

constexpr const char* kPrefix = "run-";
constexpr int kRandomBytes = 3;  // paths of sockets below have to be short
constexpr int kAttempts = 100;
constexpr mode_t kPrivate = 0700;

bool is_ours(const HeldFolder& folder) {
  struct stat status {};
  return ::fstat(folder.descriptor().get(), &status) == 0 && status.st_uid == ::geteuid();
}

bool take_lock(const HeldFolder& folder) { return ::flock(folder.descriptor().get(), LOCK_EX | LOCK_NB) == 0; }

/// Those of ours that nobody holds the lock of.
void remove_stale(const HeldFolder& parent) {
  const auto entries = parent.entries();
  for (const auto& entry : entries ? *entries : std::vector<HeldFolder::Entry>()) {
    if (!entry.is_folder || !entry.name.starts_with(kPrefix)) continue;
    const auto folder = parent.folder(entry.name);
    if (!folder || !is_ours(*folder) || !take_lock(*folder)) continue;
    folder->remove_content();
    parent.remove_folder(entry.name);
  }
}

}  // namespace

/// In /tmp first, since paths of Unix sockets hold 107 bytes, and XDG_RUNTIME_DIR goes when its session ends.
Result<PrivateFolder> PrivateFolder::make(const std::map<std::string, std::string>& environment) {
  auto parent = runtime_folder({});
  if (!parent) parent = runtime_folder(environment);
  return parent ? make_in(*parent) : parent.error();
}

Result<PrivateFolder> PrivateFolder::make_in(const std::string& path) {
  auto parent = HeldFolder::open(path);
  if (!parent) return parent.error();
  if (!is_ours(*parent)) return unavailable_error(fmt::format("{} belongs to somebody else by now", path));
  remove_stale(*parent);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    auto name = kPrefix + random_hex(kRandomBytes);
    const bool made = ::mkdirat(parent->descriptor().get(), name.c_str(), kPrivate) == 0;
    if (!made && errno != EEXIST) return system_error(fmt::format("cannot make a folder in {}", path), errno);
    if (!made) continue;
    auto folder = parent->folder(name);
    // Between its making and its lock another launcher may have taken it for a stale one.
    if (!folder || !take_lock(*folder) || !parent->folder(name)) continue;
    return PrivateFolder(std::move(*parent), std::move(name), std::move(*folder));
  }
  return system_error(fmt::format("cannot keep a folder in {}", path), EBUSY);
}

/// Ranks know its path, and may have put another folder there: only what is in this one is removed.
PrivateFolder::~PrivateFolder() {
  if (!folder_) return;
  folder_.remove_content();
  parent_.remove_folder(name_);
}

}  // namespace taas::node
