#include "proc/spawn/signals.hpp"

#include <signal.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

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

struct SignalSource::State : std::enable_shared_from_this<SignalSource::State> {
  State(boost::asio::io_context& io, Callback callback) : signals(io), on_signal(std::move(callback)) {}

  void wait() {
    signals.async_wait([self = shared_from_this()](boost::system::error_code stopped, int signal) {
      if (stopped || self->closed) return;
      self->wait();
      self->on_signal(signal, steady_now());
    });
  }

  boost::asio::signal_set signals;
  Callback on_signal;
  bool closed = false;
};

SignalSource::SignalSource(boost::asio::io_context& io, const std::vector<int>& signals, Callback on_signal)
    : state_(std::make_shared<State>(io, std::move(on_signal))) {
  for (int signal : signals) {
    boost::system::error_code cannot_be_caught;
    if (signal != SIGHUP || !is_ignored(signal)) state_->signals.add(signal, cannot_be_caught);
  }
  state_->wait();
  change_mask(SIG_UNBLOCK, signals);
}

SignalSource::~SignalSource() {
  state_->closed = true;
  boost::system::error_code ignored;
  state_->signals.clear(ignored);
  state_->signals.cancel(ignored);
}

}  // namespace taas
