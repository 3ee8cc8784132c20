#include "base/timer.hpp"

#include <boost/asio/steady_timer.hpp>
#include <cstdint>

namespace taas {

struct Timer::State {
  State(boost::asio::io_context& io, std::function<void()> callback) : timer(io), on_expired(std::move(callback)) {}

  boost::asio::steady_timer timer;
  std::function<void()> on_expired;
  std::uint64_t current = 0;  // an expiry that was already queued when it was replaced has an older number
};

Timer::Timer(boost::asio::io_context& io, std::function<void()> on_expired)
    : state_(std::make_shared<State>(io, std::move(on_expired))) {}

Timer::~Timer() { clear(); }

void Timer::set(Instant deadline) {
  state_->timer.expires_at(std::chrono::time_point_cast<std::chrono::steady_clock::duration>(deadline));
  state_->timer.async_wait([state = state_, number = ++state_->current](const boost::system::error_code& cancelled) {
    if (!cancelled && number == state->current) state->on_expired();
  });
}

void Timer::clear() {
  ++state_->current;
  state_->timer.cancel();
}

}  // namespace taas
