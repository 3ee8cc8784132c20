#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/clock.hpp"

namespace boost::asio {
class io_context;
}

namespace taas {

/// True when the process ignores this signal, as it does SIGHUP under nohup.
bool is_ignored(int signal);

/// From now on this process, and what it starts, is not ended by what a batch system sends to every process of a job.
void hold_stop_signals();

/// From now on a wish to stop waits for a SignalSource: what is begun is known to who can end it. SIGQUIT stays the way
/// out.
void hold_until_received();

/// Receives signals in the event loop, those that were held too. SIGHUP that was ignored when the process started
/// (nohup) stays ignored. Destroying it gives the signals their default meaning back. One at a time.
class SignalSource {
 public:
  using Callback = std::function<void(int signal, Instant, int sender)>;  ///< `sender`: process id; 0: the kernel
  SignalSource(boost::asio::io_context& io, const std::vector<int>& signals, Callback on_signal);
  ~SignalSource();
  SignalSource(const SignalSource&) = delete;
  SignalSource& operator=(const SignalSource&) = delete;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace taas
