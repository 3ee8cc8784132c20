#include "proc/spawn/signals.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <stdexcept>

#include "base/fd.hpp"

namespace taas {

bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

namespace {

void change_mask(int how, const std::vector<int>& numbers) {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (int signal : numbers) ::sigaddset(&signals, signal);
  ::pthread_sigmask(how, &signals, nullptr);
}

}  // namespace

void hold_stop_signals() { change_mask(SIG_BLOCK, {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}); }

void hold_until_received() { change_mask(SIG_BLOCK, {SIGINT, SIGTERM, SIGHUP}); }

namespace {

struct Received {
  int signal;
  int sender;
};

/// Where the handler writes to; the event loop reads at the other end.
std::atomic<int> written_to = -1;

/// Asio's own handler does not say who has sent the signal. A full pipe drops it: there are thousands already.
void receive(int signal, siginfo_t* info, void* /*context*/) {
  const int before = errno;
  Received received{signal, info->si_code <= 0 ? info->si_pid : 0};
  [[maybe_unused]] auto written = ::write(written_to.load(), &received, sizeof received);
  errno = before;
}

void handle(int signal) {
  struct sigaction action {};
  action.sa_sigaction = receive;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  ::sigfillset(&action.sa_mask);
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

struct SignalSource::State : std::enable_shared_from_this<SignalSource::State> {
  State(boost::asio::io_context& io, Callback callback) : pipe(io), on_signal(std::move(callback)) {}

  Result<> open() {
    auto made = make_pipe();
    if (!made) return made.error();
    for (const auto* end : {&made->read, &made->write}) ::fcntl(end->get(), F_SETFL, O_NONBLOCK);
    pipe.assign(made->read.release());
    write = std::move(made->write);
    written_to = write.get();
    return {};
  }

  void wait() {
    pipe.async_wait(pipe.wait_read, [self = shared_from_this()](boost::system::error_code stopped) {
      if (!stopped && !self->closed) self->hear();
    });
  }

  /// One in a turn: the callback may destroy the source.
  void hear() {
    Received received{};
    const auto count = ::read(pipe.native_handle(), &received, sizeof received);
    wait();
    if (count == sizeof received) on_signal(received.signal, steady_now(), received.sender);
  }

  boost::asio::posix::stream_descriptor pipe;
  Fd write;
  Callback on_signal;
  std::vector<int> handled;
  bool closed = false;
};

SignalSource::SignalSource(boost::asio::io_context& io, const std::vector<int>& signals, Callback on_signal)
    : state_(std::make_shared<State>(io, std::move(on_signal))) {
  if (auto opened = state_->open(); !opened) throw std::runtime_error(opened.error().message);
  for (int signal : signals) {
    if (signal == SIGHUP && is_ignored(signal)) continue;
    handle(signal);
    state_->handled.push_back(signal);
  }
  state_->wait();
  change_mask(SIG_UNBLOCK, signals);
}

SignalSource::~SignalSource() {
  state_->closed = true;
  for (int signal : state_->handled) ::signal(signal, SIG_DFL);
  written_to = -1;
  boost::system::error_code ignored;
  state_->pipe.close(ignored);
}

}  // namespace taas
