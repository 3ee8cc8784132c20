#include "node/process/runtime_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>

namespace taas::node {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRuntimeDirectory = "XDG_RUNTIME_DIR";
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
  std::error_code failed;
  const auto since = fs::file_time_type::clock::now() - kOld;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed)) {
    std::error_code unknown;
    const bool is_file = fs::is_regular_file(entry->symlink_status(unknown));
    if (!is_file || fs::last_write_time(entry->path(), unknown) >= since || unknown) continue;
    Fd lock(::open(entry->path().c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
    if (lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) ::unlink(entry->path().c_str());
  }
}

/// One that is there comes before one that could be made, so that all find the same.
Result<std::string> find_runtime_folder(const std::map<std::string, std::string>& environment,
                                        const std::string& parent) {
  auto runtime = environment.find(kRuntimeDirectory);
  if (runtime != environment.end() && is_private_folder(runtime->second)) {
    if (auto ours = runtime->second + "/taas-run"; make_private_folder(ours)) return ours;
  }
  for (auto* usable : {is_private_folder, make_private_folder}) {
    for (int attempt = 0; attempt < kMostNames; ++attempt) {
      if (auto name = name_of(parent, attempt); usable(name)) return name;
    }
  }
  return usage_error(
      fmt::format("no folder for locks: {} to {} belong to somebody else or cannot be made; set {} to a "
                  "folder of yours with mode 0700",
                  name_of(parent, 0), name_of(parent, kMostNames - 1), kRuntimeDirectory));
}

}  // namespace

Result<std::string> runtime_folder(const std::map<std::string, std::string>& environment, const std::string& parent) {
  auto folder = find_runtime_folder(environment, parent);
  if (folder) remove_old_locks(*folder);
  return folder;
}

Result<Fd> open_lock(const std::string& path) {
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return system_error("cannot open the lock " + path, errno);
  ::futimens(file.get(), nullptr);  // it is wanted
  return file;
}

}  // namespace taas::node
