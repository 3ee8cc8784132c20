#include "start/meeting.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <thread>

#include "base/clock.hpp"
#include "base/environment/environment.hpp"
#include "base/files.hpp"
#include "base/ids.hpp"
#include "node/process/runtime_folder.hpp"
#include "plan/options/numbers.hpp"

namespace taas::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto kFirstLook = 20ms;
constexpr auto kLastLook = 250ms;
constexpr auto kLockPatience = 5s;
constexpr std::string_view kRefusal = "refused: ";  // what a bootstrap never begins with
constexpr auto kLeaderPatience = 60s;               // for the leader of a node to be started

/// Whoever else may write the folder must not be able to put a file of theirs in the place of ours, nor a pipe that
/// nobody writes to.
bool is_ours(const Fd& file) {
  struct stat status {};
  return ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == ::geteuid() &&
         (status.st_mode & 077) == 0;
}

Result<std::string> lock_path(const plan::SlurmTask& mode, const std::map<std::string, std::string>& environment) {
  auto folder = node::runtime_folder(environment);
  if (!folder) return folder.error();
  return fmt::format("{}/{}.{}.{}.{}", *folder, mode.job.id, mode.step.id, mode.job.restart_count, mode.step.node_id);
}

}  // namespace

Meeting::Meeting(const std::string& output_directory, const plan::SlurmTask& mode,
                 const std::map<std::string, std::string>& environment)
    : file_(fmt::format("{}/.taas-{}.{}.{}", output_directory, mode.job.id, mode.step.id, mode.job.restart_count)),
      lock_(lock_path(mode, environment)) {}

/// Those that wait for it have opened it, and wait for its end; the keeper holds it for a moment more.
Meeting::~Meeting() {
  if (held_) ::unlink(lock_->c_str());
}

Result<> Meeting::announce(const node::Bootstrap& bootstrap) const { return write(print_bootstrap(bootstrap)); }

void Meeting::refuse(const std::string& why) const {
  std::error_code ignored;  // then nothing can be told
  std::filesystem::create_directories(std::filesystem::path(file_).parent_path(), ignored);
  (void)write(fmt::format("{}{}", kRefusal, why));
}

Result<> Meeting::write(const std::string& text) const {
  auto temporary = fmt::format("{}.{}", file_, random_hex(4));
  Fd file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return system_error("cannot write " + temporary, errno);
  auto written = write_all(file, text);
  if (written && ::rename(temporary.c_str(), file_.c_str()) == 0) return {};
  auto error = written ? system_error("cannot write " + file_, errno) : written.error();
  ::unlink(temporary.c_str());
  return error;
}

void Meeting::conclude() const { ::unlink(file_.c_str()); }

Result<node::Bootstrap> Meeting::await(std::chrono::milliseconds patience) const {
  auto until = steady_now() + patience;
  for (auto pause = kFirstLook; steady_now() < until;
       pause = std::min<std::chrono::milliseconds>(2 * pause, kLastLook)) {
    Fd file(::open(file_.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (file && !is_ours(file)) {
      return usage_error(
          fmt::format("{} is not a file of yours alone: remove it, or choose another folder with --output", file_));
    }
    if (file) {
      auto text = read_all(file);  // by its name it could be another file by now
      if (!text) return text.error();
      if (text->starts_with(kRefusal)) {
        return usage_error(
            fmt::format("the first node of the step cannot take part: {}", text->substr(kRefusal.size())));
      }
      return node::parse_bootstrap(*text);
    }
    std::this_thread::sleep_for(pause);
  }
  return unavailable_error(
      fmt::format("the first node of the step has not said where it is in {}: --output has to be a "
                  "folder that all nodes share",
                  file_));
}

/// The children inherit the lock.
Result<> Meeting::lead() {
  if (!lock_) return lock_.error();
  auto lock = node::open_lock(*lock_);
  if (!lock) return lock.error();
  held_ = std::move(*lock);
  ::fcntl(held_.get(), F_SETFD, 0);
  auto until = steady_now() + kLockPatience;  // the other tasks look at it in passing
  while (::flock(held_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (steady_now() > until) return unavailable_error(fmt::format("another launcher of this step holds {}", *lock_));
    std::this_thread::sleep_for(kFirstLook);
  }
  return {};
}

/// By the coordinator; nothing before it is there, and when the run is over.
std::string Meeting::what_is_told() const {
  Fd file(::open(file_.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file || !is_ours(file)) return {};
  auto text = read_all(file);
  return text ? std::move(*text) : std::string();
}

Result<int> Meeting::wait_for_leader() const {
  if (!lock_) return lock_.error();
  auto until = steady_now() + kLeaderPatience;
  auto pause = kFirstLook;
  for (bool seen = false;; pause = std::min<std::chrono::milliseconds>(2 * pause, kLastLook)) {
    auto told = what_is_told();
    bool over = told.starts_with(kRefusal) || (seen && told.empty());
    seen = seen || !told.empty();
    auto file = node::open_lock(*lock_);
    if (!file) return file.error();
    bool led = ::flock(file->get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (led || over || steady_now() > until) {
      ::flock(file->get(), LOCK_SH);  // until the leader has ended
      ::unlink(lock_->c_str());
      return 0;
    }
    file = Fd();
    std::this_thread::sleep_for(pause);
  }
}

int slurm_node(const std::map<std::string, std::string>& environment) {
  return plan::parse_integer(value_of(environment, "SLURM_NODEID")).value_or(-1);
}

}  // namespace taas::cli
