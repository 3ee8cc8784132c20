#include "proc/family/exits.hpp"

#include <signal.h>
#include <sys/wait.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>

namespace taas {
namespace {

ExitStatus to_status(const siginfo_t& info) {
  if (info.si_code == CLD_EXITED) return {.code = info.si_status};
  return {.signal = info.si_status, .core_dumped = info.si_code == CLD_DUMPED};
}

int wait_for(int pid, siginfo_t& info) {
  int result = 0;
  do result = ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG);
  while (result < 0 && errno == EINTR);
  return result;
}

}  // namespace

struct ExitWatch::State : std::enable_shared_from_this<ExitWatch::State> {
  State(boost::asio::io_context& io, Child& child, ExitCallback callback)
      : pid(child.pid), end(io, child.end.release()), on_exit(std::move(callback)) {}

  void wait() {
    end.async_wait(end.wait_read, [self = shared_from_this()](boost::system::error_code failed) {
      if (!failed && self->running) self->reap();
    });
  }

  /// A status that somebody else took is told as a plain failure rather than never.
  void reap() {
    siginfo_t info{};
    int result = wait_for(pid, info);
    if (result == 0 && info.si_pid == 0) return wait();
    running = false;
    end.close();
    auto callback = std::move(on_exit);
    callback(result == 0 ? to_status(info) : ExitStatus{.code = 255}, steady_now());
  }

  int pid;
  boost::asio::posix::stream_descriptor end;  // of watch_child()
  ExitCallback on_exit;
  bool running = true;
};

ExitWatch::ExitWatch(boost::asio::io_context& io, Child child, ExitCallback on_exit)
    : state_(std::make_shared<State>(io, child, std::move(on_exit))) {
  state_->wait();
}

ExitWatch::~ExitWatch() {
  if (!state_ || !state_->running) return;
  state_->running = false;
  boost::system::error_code ignored;
  state_->end.close(ignored);
}

ExitWatch::ExitWatch(ExitWatch&&) noexcept = default;
ExitWatch& ExitWatch::operator=(ExitWatch&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

int ExitWatch::pid() const { return state_->pid; }
bool ExitWatch::running() const { return state_->running; }

void ExitWatch::signal_group(int signal) const {
  if (state_->running) ::kill(-state_->pid, signal);
}

}  // namespace taas
