#include "proc/family/keeper.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <optional>

#include "base/files.hpp"
#include "proc/family/descendants.hpp"
#include "proc/spawn/open_files.hpp"
#include "proc/spawn/signals.hpp"

namespace taas {
namespace {

/// For processes that SIGKILL does not end soon: stuck in the kernel, or another user's.
constexpr std::chrono::seconds kReapPatience{5};

/// With one of 0, 1, 2 closed the next pipe would get its number, and messages would go there.
Result<> open_standard_streams() {
  for (;;) {
    int fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd < 0) return system_error("cannot open /dev/null", errno);
    if (fd > 2) {
      ::close(fd);
      return {};
    }
    ::fcntl(fd, F_SETFD, 0);
  }
}

sigset_t kept_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (int signal : {SIGINT, SIGTERM, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH, SIGCHLD}) {
    ::sigaddset(&signals, signal);
  }
  if (!is_ignored(SIGHUP)) ::sigaddset(&signals, SIGHUP);
  return signals;
}

/// A batch system signals all processes of a job: the agent may get its wish before the keeper does, or another signal
/// after it.
bool asks_to_end(int signal) { return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT; }

void say(const std::string& line) {
  static const Fd standard_error(::fcntl(2, F_DUPFD_CLOEXEC, 3));
  [[maybe_unused]] auto unheard = write_all(standard_error, line + "\n");
}

/// The keeper's whole life. It has no event loop and allocates next to nothing.
class Keeper {
 public:
  Keeper(pid_t agent, const sigset_t& signals) : agent_(agent), signals_(signals) {}

  [[noreturn]] void keep() {
    for (;;) {
      int signal = ::sigwaitinfo(&signals_, nullptr);
      if (signal == SIGCHLD) {
        if (auto status = agent_status()) finish(*status);
      } else if (signal > 0) {
        forwarded_ = signal;
        ::kill(agent_, signal);  // still its number: nobody but this process reaps it
      }
    }
  }

 private:
  [[nodiscard]] std::optional<int> agent_status() const {
    int status = 0;
    if (::waitpid(agent_, &status, WNOHANG) == 0) return std::nullopt;
    return status;
  }

  [[noreturn]] void finish(int status) const {
    auto survivors = kill_and_reap_descendants(kReapPatience);
    for (const auto& process : survivors) say(fmt::format("taas-run: process {} could not be killed", process.pid));
    if (WIFEXITED(status)) ::_exit(WEXITSTATUS(status));
    int signal = WTERMSIG(status);
    if (asks_to_end(signal)) {
      if (signal != forwarded_) say(fmt::format("taas-run: stopped by signal {} ({})", signal, ::strsignal(signal)));
    } else if (signal != forwarded_) {
      say(fmt::format("taas-run: the agent (process {}) was killed by signal {} ({}); all its processes were killed",
                      agent_, signal, ::strsignal(signal)));
    }
    ::_exit(128 + signal);
  }

  pid_t agent_;
  sigset_t signals_;
  int forwarded_ = 0;
};

Result<> start_agent(pid_t keeper) {
  ::setpgid(0, 0);
  ::signal(SIGTTOU, SIG_IGN);
  ::signal(SIGTTIN, SIG_IGN);
  become_subreaper();
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return system_error("cannot be tied to the keeper process", errno);
  if (::getppid() != keeper) ::_exit(128 + SIGKILL);  // it died before the kernel was told to watch it
  reserve_open_files();
  return {};
}

}  // namespace

Result<Lifeline> become_kept() {
  if (auto opened = open_standard_streams(); !opened) return opened.error();
  auto pipe = make_pipe();
  if (!pipe) return pipe.error();
  ::signal(SIGCHLD, SIG_DFL);  // a launcher's launcher may ignore it, and then no exit status is kept
  auto signals = kept_signals();
  sigset_t before;
  ::pthread_sigmask(SIG_BLOCK, &signals, &before);
  auto keeper = ::getpid();
  become_subreaper();
  auto agent = ::fork();
  if (agent > 0) {
    ::setpgid(agent, agent);  // on both sides: whoever comes first
    pipe->read.reset();
    Keeper(agent, signals).keep();
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (agent < 0) return system_error("cannot start the agent process", errno);
  pipe->write.reset();
  if (auto started = start_agent(keeper); !started) return started.error();
  return Lifeline(std::move(pipe->read));
}

Result<Lifeline> Lifeline::twin() const {
  Fd pipe(::fcntl(pipe_.get(), F_DUPFD_CLOEXEC, 0));
  if (!pipe) return system_error("cannot be tied to the keeper process", errno);
  return Lifeline(std::move(pipe));
}

void Lifeline::on_keeper_death(boost::asio::io_context& io, std::function<void()> callback) {
  auto pipe = std::make_shared<boost::asio::posix::stream_descriptor>(io, pipe_.release());
  pipe->async_wait(pipe->wait_read, [pipe, callback = std::move(callback)](boost::system::error_code stopped) {
    if (!stopped) callback();
  });
  ::prctl(PR_SET_PDEATHSIG, 0);
}

}  // namespace taas
