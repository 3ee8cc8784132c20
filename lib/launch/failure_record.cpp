#include "launch/failure_record.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <filesystem>
#include <system_error>

#include "base/environment/environment.hpp"
#include "base/files.hpp"
#include "base/folders/beneath.hpp"
#include "run/verdict/error_file.hpp"

namespace taas::launch {

FailureRecord::FailureRecord(const std::map<std::string, std::string>& environment)
    : path_(value_of(environment, "TORCHELASTIC_ERROR_FILE")) {
  if (path_.empty()) return;
  std::error_code failed;
  auto where = std::filesystem::weakly_canonical(std::filesystem::absolute(path_, failed), failed);
  if (failed) where = path_;
  name_ = where.filename().string();
  folder_ = open_folder(where.parent_path().string());
  struct stat found {};
  if (folder_ && ::fstatat(folder_->get(), name_.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0) first_ = found;
}

/// Not below a folder of ours, so that it may be a mount of its own: Kubernetes' /dev/termination-log is.
Result<> FailureRecord::write(const run::Verdict& verdict) const {
  if (path_.empty() || verdict.cause == run::Cause::kSuccess) return {};
  const auto name = "TORCHELASTIC_ERROR_FILE " + path_;
  if (!folder_) return Error(folder_.error()).with("cannot write " + name);
  constexpr int kFlags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  const Fd file(::openat(folder_->get(), name_.c_str(), kFlags, 0644));
  struct stat found {};
  if (!file && errno == ELOOP) return unavailable_error(name + " is not written: a symbolic link has taken its place");
  if (!file || ::fstat(file.get(), &found) != 0) return system_error("cannot write " + name, errno);
  if (!is_what_it_was(found)) return unavailable_error(name + " is not written: something else has taken its place");
  const bool emptied = !S_ISREG(found.st_mode) || ::ftruncate(file.get(), 0) == 0;
  if (!emptied) return system_error("cannot write " + name, errno);
  auto written = write_all(file, run::print_error_file(verdict, std::time(nullptr)));
  if (!written) return std::move(written).error().with(name);
  return {};
}

/// A file that is new, or was replaced by another file of no other name, is as good.
bool FailureRecord::is_what_it_was(const struct stat& found) const {
  if (first_ && first_->st_dev == found.st_dev && first_->st_ino == found.st_ino) return true;
  return S_ISREG(found.st_mode) && found.st_nlink <= 1;
}

}  // namespace taas::launch
