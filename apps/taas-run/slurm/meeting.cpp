#include "slurm/meeting.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "base/clock.hpp"
#include "base/environment/environment.hpp"
#include "node/process/runtime_folder.hpp"
#include "plan/options/numbers.hpp"

namespace taas::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto kFirstLockLook = 20ms;
constexpr auto kLastLockLook = 250ms;
constexpr auto kLockPatience = 5s;
constexpr auto kLeaderPatience = 60s;  // for the leader of a node to be started

Result<std::string> lock_path(const plan::SlurmTask& mode, const std::map<std::string, std::string>& environment) {
  auto folder = node::runtime_folder(environment);
  if (!folder) return folder.error();
  return fmt::format("{}/{}.{}.{}.{}", *folder, mode.job.id, mode.step.id, mode.job.restart_count, mode.step.node_id);
}

}  // namespace

Meeting::Meeting(const std::string& output_directory, const plan::SlurmTask& mode,
                 const std::map<std::string, std::string>& environment)
    : file_(fmt::format("{}/.taas-{}.{}.{}", output_directory, mode.job.id, mode.step.id, mode.job.restart_count),
            "the first node of the step"),
      lock_(lock_path(mode, environment)) {}

/// Those that wait for it have opened it, and wait for its end; the keeper holds it for a moment more.
Meeting::~Meeting() {
  if (held_) ::unlink(lock_->c_str());
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
    std::this_thread::sleep_for(kFirstLockLook);
  }
  return {};
}

Result<int> Meeting::wait_for_leader() const {
  if (!lock_) return lock_.error();
  auto until = steady_now() + kLeaderPatience;
  auto pause = kFirstLockLook;
  for (bool seen = false;; pause = std::min<std::chrono::milliseconds>(2 * pause, kLastLockLook)) {
    auto told = file_.text();
    bool over = MeetingFile::is_refusal(told) || (seen && told.empty());
    seen = seen || !told.empty();
    auto lock = node::open_lock(*lock_);
    if (!lock) return lock.error();
    bool led = ::flock(lock->get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (led || over || steady_now() > until) {
      ::flock(lock->get(), LOCK_SH);  // until the leader has ended
      ::unlink(lock_->c_str());
      return 0;
    }
    lock = Fd();
    std::this_thread::sleep_for(pause);
  }
}

int slurm_node(const std::map<std::string, std::string>& environment) {
  return plan::parse_integer(value_of(environment, "SLURM_NODEID")).value_or(-1);
}

}  // namespace taas::cli
