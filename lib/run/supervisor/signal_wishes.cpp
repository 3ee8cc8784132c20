#include "run/supervisor/signal_wishes.hpp"

#include <utility>

namespace taas::run {

SignalWish SignalWishes::read(int signal, Instant now) {
  if (policy_.asks_for_checkpoint(signal)) return SignalWish::kCheckpoint;
  if (!policy_.stops_the_run(signal)) return SignalWish::kPassOn;
  return repeats(signal, now) ? SignalWish::kNone : SignalWish::kStop;
}

bool SignalWishes::repeats(int signal, Instant now) {
  if (policy_.echo.repeats(signal, last_stop_signal_, now - last_stop_at_)) return true;
  last_stop_signal_ = signal;
  last_stop_at_ = now;
  return false;
}

bool SignalWishes::begin_checkpoint() { return !std::exchange(checkpoint_requested_, true); }

}  // namespace taas::run
