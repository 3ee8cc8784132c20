#include "proc/family/descendants.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "base/files.hpp"
#include "base/text.hpp"

namespace taas {
namespace {

/// Enough for a program that forks as fast as it is killed; the callers look again later anyway.
constexpr int kMaxPasses = 20;
constexpr std::size_t kMostOfCommand = 80;

std::multimap<int, Process> processes_by_parent() {
  std::multimap<int, Process> result;
  std::error_code failed;
  for (std::filesystem::directory_iterator entry("/proc", failed), end; !failed && entry != end;
       entry.increment(failed)) {
    auto name = entry->path().filename().string();
    int pid = 0;
    auto [rest, problem] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (problem != std::errc() || rest != name.data() + name.size()) continue;
    if (auto process = read_process(pid)) result.emplace(process->parent, *process);
  }
  return result;
}

/// Reaps every child that has ended. False when there is no child at all.
bool reap_ended_children() {
  for (;;) {
    auto pid = ::waitpid(-1, nullptr, WNOHANG | __WALL);
    if (pid == 0) return true;
    if (pid < 0 && errno != EINTR) return false;
  }
}

/// Holds SIGCHLD back while it lives, so that it can be waited for with a deadline.
class ChildSignal {
 public:
  ChildSignal() {
    ::sigemptyset(&child_);
    ::sigaddset(&child_, SIGCHLD);
    ::pthread_sigmask(SIG_BLOCK, &child_, &before_);
  }
  ~ChildSignal() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  ChildSignal(const ChildSignal&) = delete;
  ChildSignal& operator=(const ChildSignal&) = delete;
  void wait(std::chrono::milliseconds at_most) const {
    timespec limit{at_most.count() / 1000, at_most.count() % 1000 * 1'000'000};
    ::sigtimedwait(&child_, nullptr, &limit);
  }

 private:
  sigset_t child_;
  sigset_t before_;
};

}  // namespace

void become_subreaper() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

std::optional<Process> read_process(int pid) {
  auto stat = read_file("/proc/" + std::to_string(pid) + "/stat");
  if (!stat) return std::nullopt;
  auto name_end = stat->rfind(')');  // the name may hold anything, brackets and spaces too
  if (name_end == stat->npos) return std::nullopt;
  Process process{.pid = pid};
  unsigned long long started = 0;
  // Fields 3, 4, 5 and 22 of proc(5): the third follows the name.
  int fields = std::sscanf(stat->c_str() + name_end + 1,
                           " %c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
                           &process.state, &process.parent, &process.group, &started);
  if (fields != 4) return std::nullopt;
  process.started = started;
  return process;
}

std::vector<Process> descendants(const std::set<int>& spared) {
  auto by_parent = processes_by_parent();
  std::vector<Process> result{{.pid = ::getpid()}};
  for (std::size_t next = 0; next < result.size(); ++next) {
    auto [first, last] = by_parent.equal_range(result[next].pid);
    for (; first != last; ++first) {
      if (!spared.contains(first->second.pid)) result.push_back(first->second);
    }
  }
  result.erase(result.begin());
  return result;
}

/// The last system call is one that the kernel or a sandbox does not have: its number alone has to name a process.
bool is_denied() { return errno == ENOSYS || errno == EPERM; }

void signal_processes(const std::vector<Process>& processes, std::initializer_list<int> signals) {
  for (const auto& process : processes) {
    Fd handle(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0)));
    if (!handle && !is_denied()) continue;
    auto now = read_process(process.pid);  // looked up after the handle was taken: so the handle is this process
    if (!now || now->started != process.started) continue;
    for (int signal : signals) {
      const bool told = handle && ::syscall(SYS_pidfd_send_signal, handle.get(), signal, nullptr, 0) == 0;
      if (!told && (!handle || is_denied())) ::kill(process.pid, signal);
    }
  }
}

/// A process that was found is named by its words, or, where it has none left, as the kernel calls it.
std::string describe(const Process& process) {
  auto words = read_file("/proc/" + std::to_string(process.pid) + "/cmdline");
  std::string command = words ? std::move(*words) : std::string();
  while (command.ends_with('\0')) command.pop_back();
  std::replace(command.begin(), command.end(), '\0', ' ');
  if (command.empty()) {
    auto name = read_file("/proc/" + std::to_string(process.pid) + "/comm");
    command = name ? std::string(trim(*name, "\n")) : "?";
  }
  if (command.size() > kMostOfCommand) command = command.substr(0, kMostOfCommand) + "...";
  return fmt::format("{} ({})", process.pid, printable(command));
}

void kill_descendants(const std::set<int>& spared) {
  std::set<Process> seen;
  std::vector<Process> stopped;
  for (int pass = 0; pass < kMaxPasses; ++pass) {
    std::vector<Process> fresh;
    for (const auto& process : descendants(spared)) {
      if (seen.insert(process).second) fresh.push_back(process);
    }
    if (fresh.empty()) break;
    const bool first = pass == 0;  // later ones were made meanwhile: there may be a process that goes on making them
    signal_processes(fresh, {first ? SIGKILL : SIGSTOP});
    if (!first) stopped.insert(stopped.end(), fresh.begin(), fresh.end());
  }
  signal_processes(stopped, {SIGKILL});
}

bool has_no_children() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0 && errno == ECHILD;
}

std::vector<Process> kill_and_reap_descendants(std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds kLookAgain{20};
  ChildSignal child_signal;
  auto deadline = steady_now() + patience;
  for (;;) {
    if (!reap_ended_children()) return {};
    if (steady_now() >= deadline) return descendants();
    kill_descendants();
    child_signal.wait(kLookAgain);
  }
}

}  // namespace taas
