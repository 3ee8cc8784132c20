#include "proc/spawn/spawn.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <memory>

#include "proc/machine/numa.hpp"
#include "proc/spawn/child_descriptors.hpp"
#include "proc/spawn/child_watch.hpp"
#include "proc/spawn/landlock.hpp"
#include "proc/spawn/oom_score.hpp"
#include "proc/spawn/python.hpp"
#include "proc/spawn/signals.hpp"
#include "proc/spawn/spawn_failure.hpp"

namespace taas {
namespace {

using Step = SpawnStep;

int number_in_child(std::size_t inherited) { return 3 + static_cast<int>(inherited); }

/// What a child process needs, with numbers of its own.
struct Sources {
  int streams[3] = {0, 1, 2};
  std::vector<int> inherited = {};
  int failures = -1;
  int limit = 3;  ///< none of them, nor of other descriptors that the child uses, is as large as this
};

/// Makes a rank's process out of a copy of the launcher, whose memory it shares until exec: only system calls there, no
/// allocation, no locks, no destructors.
class RankSetup {
 public:
  RankSetup(const SpawnRequest& request, const char* program, const char* const* argv, const char* const* environment)
      : request_(request),
        program_(program),
        argv_(argv),
        environment_(environment),
        launcher_(::getpid()),
        keep_hangup_ignored_(is_ignored(SIGHUP)) {}

  void use(const Sources& sources) { sources_ = &sources; }

  /// In the child. Returns only when the program cannot run.
  int run() {
    for (auto [step, action] : {
             Action{Step::kStreams, &RankSetup::leave_table},
             Action{Step::kStreams, &RankSetup::connect_streams},
             Action{Step::kSession, &RankSetup::lead_session},
             Action{Step::kParent, &RankSetup::die_with_parent},
             Action{Step::kDirectory, &RankSetup::change_directory},
             Action{Step::kLimit, &RankSetup::restore_limit},
             Action{Step::kProcessors, &RankSetup::bind_to_processors},
             Action{Step::kReadOnly, &RankSetup::protect_directories},
         }) {
      if (!(this->*action)()) return fail(step);
    }
    reset_signals();
    ::execve(program_, const_cast<char* const*>(argv_), const_cast<char* const*>(environment_));
    return fail(Step::kExec);
  }

 private:
  struct Action {
    Step step;
    bool (RankSetup::*function)();
  };

  int fail(Step step) {
    SpawnFailure failure{step, errno};
    [[maybe_unused]] auto written = ::write(sources_->failures, &failure, sizeof failure);
    return 127;
  }

  /// From here on descriptors are the child's own. Those above the limit, by far the most, are not even copied; an old
  /// kernel copies all.
  bool leave_table() {
    auto above = static_cast<unsigned>(sources_->limit);
    if (::syscall(SYS_close_range, above, ~0u, CLOSE_RANGE_UNSHARE) != 0 && ::unshare(CLONE_FILES) != 0) return false;
    if (request_.when_memory_runs_out == WhenMemoryRunsOut::kBeforeLauncher) oom_score_.apply();
    return true;
  }

  /// The rest becomes close-on-exec, whoever opened it (the shell, a batch system); a kernel too old for that call only
  /// passes on what the launcher itself inherited.
  bool connect_streams() {
    for (int i = 0; i < 3; ++i) {
      if (sources_->streams[i] != i && ::dup2(sources_->streams[i], i) < 0) return false;
    }
    for (std::size_t i = 0; i < sources_->inherited.size(); ++i) {
      if (::dup2(sources_->inherited[i], number_in_child(i)) < 0) return false;
    }
    auto others = static_cast<unsigned>(number_in_child(sources_->inherited.size()));
    ::syscall(SYS_close_range, others, ~0u, CLOSE_RANGE_CLOEXEC);
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

  bool bind_to_processors() { return request_.processors.empty() || bind_this_thread(request_.processors); }

  bool protect_directories() { return request_.read_only == nullptr || request_.read_only->restrict_self(); }

  /// All signals are blocked here (see BlockedSignals), so that no handler of the launcher runs in the child. The
  /// kernel is asked without sigaction(): what a sanitizer keeps of handlers is in memory that is the launcher's too.
  void reset_signals() {
    const unsigned long fresh[4] = {};  // of the kernel's sigaction: SIG_DFL, and nothing else
    for (int signal = 1; signal <= SIGRTMAX; ++signal) {
      if (signal != SIGHUP || !keep_hangup_ignored_) ::syscall(SYS_rt_sigaction, signal, fresh, nullptr, sizeof(long));
    }
    const unsigned long ignore[4] = {1};  // SIG_IGN
    for (int signal : request_.ignored_signals) ::syscall(SYS_rt_sigaction, signal, ignore, nullptr, sizeof(long));
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
  }

  const SpawnRequest& request_;
  const char* program_;
  const char* const* argv_;
  const char* const* environment_;
  const Sources* sources_ = nullptr;
  pid_t launcher_;
  bool keep_hangup_ignored_;
  ChildOomScore oom_score_;
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

/// A stream that is not redirected is the launcher's own, which may be close-on-exec: then it is redirected to itself.
Result<Sources> gather(const SpawnRequest& request, const Fd& failures, ChildDescriptors& descriptors) {
  Sources sources;
  const Fd* given[3] = {request.standard_input, request.standard_output, request.standard_error};
  for (int i = 0; i < 3; ++i) {
    int flags = given[i] == nullptr ? ::fcntl(i, F_GETFD) : FD_CLOEXEC;
    bool as_it_is = flags < 0 || (flags & FD_CLOEXEC) == 0;  // closed, or to be inherited anyway
    if (as_it_is) continue;
    auto number = descriptors.add(given[i] == nullptr ? i : given[i]->get());
    if (!number) return number.error();
    sources.streams[i] = *number;
  }
  for (const auto* fd : request.inherited) {
    auto number = descriptors.add(fd->get());
    if (!number) return number.error();
    sources.inherited.push_back(*number);
  }
  auto number = descriptors.add(failures.get());
  if (!number) return number.error();
  sources.failures = *number;
  if (request.read_only != nullptr) descriptors.keep(request.read_only->descriptor());
  sources.limit = descriptors.limit();
  return sources;
}

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TAAS_THREAD_SANITIZER
#endif
#endif
#ifdef __SANITIZE_THREAD__
#define TAAS_THREAD_SANITIZER
#endif

int fork_and_run(RankSetup& setup) {
  int pid = ::fork();
  if (pid == 0) ::_exit(setup.run());
  return pid;
}

#ifdef TAAS_THREAD_SANITIZER

/// What the thread sanitizer keeps of a thread would be changed by a child that shares its memory.
Result<int> launch(RankSetup& setup) {
  BlockedSignals blocked;
  int pid = fork_and_run(setup);
  if (pid < 0) return cannot_fork("a process", errno);
  return pid;
}

#else

int run_setup(void* setup) { return static_cast<RankSetup*>(setup)->run(); }

/// The child shares memory, and at first descriptors, and the calling thread waits for its exec, as vfork() has it. But
/// vfork() copies all descriptors. qemu-user has no such clone(), and says so by EINVAL.
Result<int> launch(RankSetup& setup) {
  constexpr std::size_t kStack = 64 * 1024;
  auto stack = std::make_unique_for_overwrite<std::max_align_t[]>(kStack / sizeof(std::max_align_t));
  BlockedSignals blocked;
  int pid = ::clone(run_setup, reinterpret_cast<char*>(stack.get()) + kStack,
                    CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD, &setup);
  if (pid < 0 && errno == EINVAL) pid = fork_and_run(setup);
  if (pid < 0) return cannot_fork("a process", errno);
  return pid;
}

#endif

/// The child's descriptors are open in the launcher during its start only.
Result<int> launch_with(RankSetup& setup, const SpawnRequest& request, const Fd& failures) {
  ChildDescriptors descriptors(number_in_child(request.inherited.size()));
  auto sources = gather(request, failures, descriptors);
  if (!sources) return sources.error();
  setup.use(*sources);
  return launch(setup);
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
  RankSetup setup(request, program.c_str(), argv.data(), environment.data());
  auto pid = launch_with(setup, request, pipe->write);
  if (!pid) return std::move(pid.error()).with("cannot start " + request.argv.front());
  pipe->write.reset();
  auto failure = read_failure(pipe->read);
  if (failure) {
    discard_child(*pid);
    return describe(*failure, request, program);
  }
  auto end = watch_child(*pid);
  if (end) return Child{*pid, std::move(*end), false};
  discard_child(*pid);
  return std::move(end.error()).with(request.argv.front());
}

}  // namespace taas
