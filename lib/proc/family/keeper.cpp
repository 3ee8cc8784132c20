#include "proc/family/keeper.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <ctime>
#include <optional>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "proc/family/audience.hpp"
#include "proc/family/descendants.hpp"
#include "proc/spawn/message_socket.hpp"
#include "proc/spawn/open_files.hpp"
#include "proc/spawn/signals.hpp"
#include "proc/spawn/spawn_failure.hpp"

namespace taas {
namespace {

/// For processes that SIGKILL does not end soon: stuck in the kernel, or another user's.
constexpr std::chrono::seconds kReapPatience{5};
/// For the answer of an agent that was told to end: it may be stopped, traced, or wait for a device.
constexpr std::chrono::seconds kAnswerPatience{10};
constexpr timespec kAskAgain{1, 0};

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

/// O_NONBLOCK belongs to the open file, which the shell and its other programs share: a rank that set it and ended
/// would leave them reads and writes that fail.
class SharedStreams {
 public:
  void put_back() const {
    for (int fd = 0; fd < 3; ++fd) {
      const int now = ::fcntl(fd, F_GETFL);
      const bool changed = now >= 0 && blocked_[fd] && (now & O_NONBLOCK) != 0;
      if (changed) ::fcntl(fd, F_SETFL, now & ~O_NONBLOCK);
    }
  }

 private:
  static bool blocks(int fd) { return (::fcntl(fd, F_GETFL) & O_NONBLOCK) == 0; }
  std::array<bool, 3> blocked_{blocks(0), blocks(1), blocks(2)};
};

/// The keeper's whole life. It has no event loop and allocates next to nothing.
class Keeper {
 public:
  Keeper(pid_t agent, Fd socket, const sigset_t& signals)
      : agent_(agent), socket_(std::move(socket)), signals_(signals) {}

  [[noreturn]] void keep() {
    for (;;) {
      int signal = heard_at_ ? ::sigtimedwait(&signals_, nullptr, &kAskAgain) : ::sigwaitinfo(&signals_, nullptr);
      if (signal == SIGCHLD) {
        if (auto status = reap()) finish(*status);
      } else if (signal > 0) {
        pass_on(signal);
      }
      if (heard_at_) check_on_agent();
    }
  }

 private:
  /// Its number still is its own: nobody but this process reaps it.
  void pass_on(int signal) {
    forwarded_ = signal;
    ::kill(agent_, signal);
    if (asks_to_end(signal) && !heard_at_) heard_at_ = steady_now();
  }

  /// One that has no event loop yet ends of the signal, or holds it back until it can end what it has begun.
  void check_on_agent() {
    auto seen = read_disposition(agent_, SIGTERM);
    if (seen && seen->stopped) ::kill(agent_, SIGCONT);
    char answer = 0;
    const auto now = steady_now();
    while (::recv(socket_.get(), &answer, 1, MSG_DONTWAIT) == 1) {
      has_loop_ = true;
      heard_at_ = now;
    }
    if (!has_loop_) return;
    ::send(socket_.get(), &answer, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (now - *heard_at_ < kAnswerPatience) return;
    if (killed_) finish(SIGKILL);
    say(fmt::format("taas-run: the agent (process {}) has not answered for {} s since it was told to stop", agent_,
                    kAnswerPatience.count()));
    killed_ = true;
    heard_at_ = now;
    ::kill(agent_, SIGKILL);
  }

  /// The status of the agent, if it has ended. The first process of a container gets what others there leave behind
  /// (`docker exec`, probes), which stays in the process table until it is reaped.
  [[nodiscard]] std::optional<int> reap() const {
    int status = 0;
    for (;;) {
      auto pid = ::waitpid(-1, &status, WNOHANG | __WALL);
      if (pid == agent_) return status;
      if (pid <= 0) return std::nullopt;
    }
  }

  [[noreturn]] void finish(int status) const {
    auto survivors = kill_and_reap_descendants(kReapPatience);
    streams_.put_back();
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

  const SharedStreams streams_;
  pid_t agent_;
  Fd socket_;
  sigset_t signals_;
  int forwarded_ = 0;
  std::optional<Instant> heard_at_;  // from the first signal to end on: then, or when the agent last answered
  bool has_loop_ = false;            // the agent has answered
  bool killed_ = false;
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
  auto sockets = make_message_sockets();
  if (!sockets) return sockets.error();
  ::signal(SIGCHLD, SIG_DFL);  // a launcher's launcher may ignore it, and then no exit status is kept
  auto signals = kept_signals();
  sigset_t before;
  ::pthread_sigmask(SIG_BLOCK, &signals, &before);
  auto keeper = ::getpid();
  become_subreaper();
  auto agent = ::fork();
  if (agent > 0) {
    ::setpgid(agent, agent);  // on both sides: whoever comes first
    sockets->second.reset();
    Keeper(agent, std::move(sockets->first), signals).keep();
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (agent < 0) return cannot_fork("the agent process", errno);
  sockets->first.reset();
  if (auto started = start_agent(keeper); !started) return started.error();
  return Lifeline(std::move(sockets->second));
}

Result<Lifeline> Lifeline::twin() const {
  Fd socket(::fcntl(socket_.get(), F_DUPFD_CLOEXEC, 0));
  if (!socket) return system_error("cannot be tied to the keeper process", errno);
  return Lifeline(std::move(socket));
}

namespace {

/// Answers each question of the keeper, until its end.
class Answering : public std::enable_shared_from_this<Answering> {
 public:
  Answering(boost::asio::io_context& io, Fd socket, std::function<void()> on_end)
      : socket_(io, socket.release()), on_end_(std::move(on_end)) {}

  void answer() {
    char word = 0;
    ::send(socket_.native_handle(), &word, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    socket_.async_wait(socket_.wait_read, [self = shared_from_this()](boost::system::error_code stopped) {
      if (!stopped) self->hear();
    });
  }

 private:
  void hear() {
    char word = 0;
    const auto count = ::recv(socket_.native_handle(), &word, 1, MSG_DONTWAIT);
    const bool nothing_yet = count < 0 && (errno == EAGAIN || errno == EINTR);
    count == 1 || nothing_yet ? answer() : on_end_();
  }

  boost::asio::posix::stream_descriptor socket_;
  std::function<void()> on_end_;
};

}  // namespace

void Lifeline::on_keeper_death(boost::asio::io_context& io, std::function<void()> callback) {
  std::make_shared<Answering>(io, std::move(socket_), std::move(callback))->answer();
  ::prctl(PR_SET_PDEATHSIG, 0);
}

}  // namespace taas
