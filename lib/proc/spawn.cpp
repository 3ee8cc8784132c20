#include "proc/spawn.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/process/v2/posix/vfork_launcher.hpp>
#include <boost/process/v2/process.hpp>
#include <cerrno>

#include "proc/landlock.hpp"
#include "proc/oom_score.hpp"
#include "proc/python.hpp"
#include "proc/signals.hpp"
#include "proc/spawn_failure.hpp"

namespace taas {
namespace {

namespace process = boost::process::v2;
using boost::system::error_code;

using Step = SpawnStep;

int number_in_child(std::size_t inherited) { return 3 + static_cast<int>(inherited); }

/// The initialiser that makes a rank's process out of the launcher's. on_exec_setup and on_exec_error run in the child,
/// which shares the parent's memory until exec: only system calls there, no allocation, no locks, no destructors.
class RankSetup {
 public:
  /// `failures` and `inherited` have numbers above those that `inherited` get in the child.
  RankSetup(const SpawnRequest& request, const char** environment, const std::vector<Fd>& inherited, const Fd& failures)
      : request_(request),
        environment_(environment),
        inherited_(inherited),
        failures_(failures.get()),
        launcher_(::getpid()),
        keep_hangup_ignored_(is_ignored(SIGHUP)) {}

  template <class Launcher>
  error_code on_setup(Launcher& launcher, const process::filesystem::path&, const char* const*&) {
    launcher.env = environment_;
    for (std::size_t i = 0; i < inherited_.size(); ++i) launcher.fd_whitelist.push_back(number_in_child(i));
    launcher.fd_whitelist.push_back(failures_);
    return {};
  }

  template <class Launcher>
  error_code on_exec_setup(Launcher&, const process::filesystem::path&, const char* const*&) {
    if (request_.when_memory_runs_out == WhenMemoryRunsOut::kBeforeLauncher) oom_score_.apply();
    for (auto [step, action] : {
             Action{Step::kStreams, &RankSetup::connect_streams},
             Action{Step::kSession, &RankSetup::lead_session},
             Action{Step::kParent, &RankSetup::die_with_parent},
             Action{Step::kDirectory, &RankSetup::change_directory},
             Action{Step::kLimit, &RankSetup::restore_limit},
             Action{Step::kReadOnly, &RankSetup::protect_directories},
         }) {
      step_ = step;
      if (!(this->*action)()) return {errno, boost::system::system_category()};
    }
    step_ = Step::kExec;
    reset_signals();
    return {};
  }

  /// Boost 1.81 asks for this with one set of arguments and calls it with another, so it takes any. It must not return:
  /// the launcher's next step is exit(), which would run the parent's own clean-up.
  template <class... Any>
  void on_exec_error(Any&&...) {
    SpawnFailure failure{step_, errno};
    [[maybe_unused]] auto written = ::write(failures_, &failure, sizeof failure);
    ::_exit(127);
  }

 private:
  struct Action {
    Step step;
    bool (RankSetup::*function)();
  };

  /// A source that is itself one of 0, 1, 2 moves out of the way first. The rest becomes close-on-exec, whoever opened
  /// it (the shell, a batch system); a kernel too old for that call only passes on what the launcher itself inherited.
  bool connect_streams() {
    int sources[3] = {0, 1, 2};
    const Fd* given[3] = {request_.standard_input, request_.standard_output, request_.standard_error};
    for (int i = 0; i < 3; ++i) {
      if (given[i] == nullptr) continue;
      sources[i] = given[i]->get();
      if (sources[i] < 3 && sources[i] != i) sources[i] = ::fcntl(sources[i], F_DUPFD_CLOEXEC, 3);
    }
    for (int i = 0; i < 3; ++i) {
      if (sources[i] == i) {
        ::fcntl(i, F_SETFD, 0);
      } else if (::dup2(sources[i], i) < 0) {
        return false;
      }
    }
    for (std::size_t i = 0; i < inherited_.size(); ++i) {
      if (::dup2(inherited_[i].get(), number_in_child(i)) < 0) return false;
    }
    ::syscall(SYS_close_range, static_cast<unsigned>(number_in_child(inherited_.size())), ~0u, CLOSE_RANGE_CLOEXEC);
    return true;
  }

  bool lead_session() { return ::setsid() >= 0; }

  bool die_with_parent() {
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return false;
    if (::getppid() == launcher_) return true;
    errno = ESRCH;  // it died before the kernel was told to watch it
    return false;
  }

  bool change_directory() { return !request_.working_directory || ::chdir(request_.working_directory->c_str()) == 0; }

  bool restore_limit() {
    if (!request_.open_files_limit) return true;
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
    limit.rlim_cur = *request_.open_files_limit;
    return ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
  }

  bool protect_directories() { return request_.read_only == nullptr || request_.read_only->restrict_self(); }

  /// All signals are blocked here (see BlockedSignals), so that no handler of the launcher runs in the child.
  void reset_signals() {
    struct sigaction fresh {};
    fresh.sa_handler = SIG_DFL;
    for (int signal = 1; signal <= SIGRTMAX; ++signal) {
      if (signal != SIGHUP || !keep_hangup_ignored_) ::sigaction(signal, &fresh, nullptr);
    }
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
  }

  const SpawnRequest& request_;
  const char** environment_;
  const std::vector<Fd>& inherited_;
  int failures_;
  pid_t launcher_;
  bool keep_hangup_ignored_;
  ChildOomScore oom_score_;
  Step step_ = Step::kExec;
};

class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

std::vector<const char*> pointers(const std::vector<std::string>& texts) {
  std::vector<const char*> result;
  result.reserve(texts.size() + 1);
  for (const auto& text : texts) result.push_back(text.c_str());
  result.push_back(nullptr);
  return result;
}

/// With nothing found the name itself is tried, so that the kernel says what is wrong with it.
std::string find_program(const SpawnRequest& request) {
  const auto& name = request.argv.front();
  if (name.find('/') != name.npos) return name;
  return find_in_path(name, find_variable(request.environment, "PATH").value_or("/usr/local/bin:/usr/bin:/bin"));
}

/// Out of the way of the numbers that inherited descriptors get.
Result<Fd> move_up(const Fd& fd, const SpawnRequest& request) {
  Fd moved(::fcntl(fd.get(), F_DUPFD_CLOEXEC, number_in_child(request.inherited.size())));
  if (!moved) return system_error("cannot duplicate a descriptor", errno);
  return moved;
}

Result<std::vector<Fd>> move_inherited_up(const SpawnRequest& request) {
  std::vector<Fd> moved;
  for (const auto* fd : request.inherited) {
    auto one = move_up(*fd, request);
    if (!one) return one.error();
    moved.push_back(std::move(*one));
  }
  return moved;
}

/// Runs Boost's launcher. Its context is new each time and used for nothing else: the launcher tells the context of the
/// fork from within the child, and the reactor of a context in use would then be rewired in memory that both share.
Result<int> launch(const std::string& program, const char** argv, RankSetup& setup) {
  boost::asio::io_context context;
  process::posix::vfork_launcher launcher;
  BlockedSignals blocked;
  error_code failed;
  try {
    launcher(context.get_executor(), failed, program, argv, setup).detach();
  } catch (const boost::system::system_error& problem) {
    failed = problem.code();
  }
  if (launcher.pid < 0) return system_error("cannot start a process", failed.value());
  return launcher.pid;
}

/// Empty when the program runs: the pipe then closed without a word.
std::optional<SpawnFailure> read_failure(const Fd& failures) {
  SpawnFailure failure;
  ssize_t count = 0;
  do count = ::read(failures.get(), &failure, sizeof failure);
  while (count < 0 && errno == EINTR);
  if (count != sizeof failure) return std::nullopt;
  return failure;
}

}  // namespace

Result<Child> spawn(const SpawnRequest& request) {
  if (request.argv.empty() || request.argv.front().empty()) return usage_error("no program given to execute");
  auto program = find_program(request);
  if (program.empty()) return describe({Step::kExec, ENOENT}, request, program);
  auto pipe = make_pipe();
  if (!pipe) return pipe.error();
  auto argv = pointers(request.argv);
  auto environment = pointers(request.environment);
  auto inherited = move_inherited_up(request);
  if (!inherited) return inherited.error();
  auto failures = move_up(pipe->write, request);
  if (!failures) return failures.error();
  RankSetup setup(request, environment.data(), *inherited, *failures);
  auto pid = launch(program, argv.data(), setup);
  if (!pid) return std::move(pid.error()).with("cannot start " + request.argv.front());
  pipe->write.reset();
  failures->reset();
  auto failure = read_failure(pipe->read);
  if (failure) {
    discard_child(*pid);
    return describe(*failure, request, program);
  }
  Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, *pid, 0)));
  if (pidfd) return Child{*pid, std::move(pidfd), false};
  auto error = system_error(fmt::format("cannot watch {} (process {})", request.argv.front(), *pid), errno);
  discard_child(*pid);
  return error;
}

}  // namespace taas
