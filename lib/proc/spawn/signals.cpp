#include "proc/spawn/signals.hpp"

#include <signal.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

namespace taas {

bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

void hold_stop_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (int signal : {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) ::sigaddset(&signals, signal);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

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
}

SignalSource::~SignalSource() {
  state_->closed = true;
  boost::system::error_code ignored;
  state_->signals.clear(ignored);
  state_->signals.cancel(ignored);
}

}  // namespace taas
