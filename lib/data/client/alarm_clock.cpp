#include "data/client/alarm_clock.hpp"

#include "base/quiet_thread.hpp"

namespace taas::data {

AlarmClock::AlarmClock(std::mutex& mutex, std::function<void()> ring) : mutex_(mutex), ring_(std::move(ring)) {
  begin();
}

void AlarmClock::begin() {
  (void)begin_quietly(thread_, [this] { run(); });
}

void AlarmClock::set(Instant at) {
  if (!thread_.joinable()) begin();
  const bool sooner = !at_ || at < *at_;
  at_ = at;
  if (sooner) changed_.notify_all();
}

void AlarmClock::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void AlarmClock::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (!at_) {
      changed_.wait(lock);
    } else if (steady_now() < *at_) {
      changed_.wait_until(lock, *at_);
    } else {
      at_.reset();
      ring_();
    }
  }
}

}  // namespace taas::data
