#include "node/process/runtime_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <vector>

#include "base/folders/held_folder.hpp"

namespace taas::node {
namespace {

constexpr const char* kRuntimeDirectory = "XDG_RUNTIME_DIR";
constexpr const char* kTemporaryDirectory = "TMPDIR";
constexpr int kMostNames = 16;  // of which others may have taken some
constexpr mode_t kPrivate = 0700;
constexpr mode_t kForOthers = 077;
constexpr auto kOld = std::chrono::hours(24);

bool is_private_folder(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == ::geteuid() &&
         (status.st_mode & kForOthers) == 0;
}

bool make_private_folder(const std::string& path) {
  return ::mkdir(path.c_str(), kPrivate) == 0 || errno == EEXIST ? is_private_folder(path) : false;
}

std::string name_of(const std::string& parent, int attempt) {
  auto name = fmt::format("{}/taas-of-{}", parent, ::geteuid());
  return attempt == 0 ? name : fmt::format("{}.{}", name, attempt);
}

/// Each port and each step of a batch job has a lock of its own: those that nobody has wanted for a day, nor holds.
void remove_old_locks(const std::string& folder) {
  const auto held = HeldFolder::open(folder);
  const auto entries = held ? held->entries() : held.error();
  const auto since = std::chrono::system_clock::now() - kOld;
  for (const auto& entry : entries ? *entries : std::vector<HeldFolder::Entry>()) {
    const auto lock = entry.is_folder ? Result<Fd>(Fd()) : held->open_to_read(entry.name);
    struct stat status {};
    if (!lock || ::fstat(lock->get(), &status) != 0) continue;
    const bool is_old = std::chrono::system_clock::from_time_t(status.st_mtime) < since;
    if (is_old && ::flock(lock->get(), LOCK_EX | LOCK_NB) == 0) held->remove(entry.name);
  }
}

/// One that is there comes before one that could be made, so that all find the same.
Result<std::string> find_runtime_folder(const std::map<std::string, std::string>& environment,
                                        const std::string& parent) {
  auto runtime = environment.find(kRuntimeDirectory);
  if (runtime != environment.end() && is_private_folder(runtime->second)) {
    if (auto ours = runtime->second + "/taas-run"; make_private_folder(ours)) return ours;
  }
  auto temporary = environment.find(kTemporaryDirectory);
  for (const auto& place : {parent, temporary == environment.end() ? parent : temporary->second}) {
    for (auto* usable : {is_private_folder, make_private_folder}) {
      for (int attempt = 0; attempt < kMostNames; ++attempt) {
        if (auto name = name_of(place, attempt); usable(name)) return name;
      }
    }
  }
  return usage_error(
      fmt::format("no folder for locks: {} to {} belong to somebody else or cannot be made; set {} to a "
                  "folder of yours with mode 0700, or {} to one that you may write to",
                  name_of(parent, 0), name_of(parent, kMostNames - 1), kRuntimeDirectory, kTemporaryDirectory));
}

}  // namespace

Result<std::string> runtime_folder(const std::map<std::string, std::string>& environment, const std::string& parent) {
  auto folder = find_runtime_folder(environment, parent);
  if (folder) remove_old_locks(*folder);
  return folder;
}

Result<Fd> open_lock(const std::string& path) {
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  if (!file) return system_error("cannot open the lock " + path, errno);
  struct stat status {};
  const bool is_lock = ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink <= 1;
  if (!is_lock) return unavailable_error(path + " is not a lock of taas-run: remove it");
  ::futimens(file.get(), nullptr);  // it is wanted
  return file;
}

}  // namespace taas::node
