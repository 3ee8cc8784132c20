#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "base/clock.hpp"

namespace taas::data {

/// Calls back at the instant that was set last, under its owner's mutex, on a thread of its own. Where the system has
/// started none, the next set() tries again.
class AlarmClock {
 public:
  AlarmClock(std::mutex& mutex, std::function<void()> ring);
  ~AlarmClock() { stop(); }
  AlarmClock(const AlarmClock&) = delete;
  AlarmClock& operator=(const AlarmClock&) = delete;

  /// With the mutex. Replaces what was set before.
  void set(Instant at);
  /// Without the mutex. It does not ring after that.
  void stop();

 private:
  void begin();
  void run();

  std::mutex& mutex_;
  std::function<void()> ring_;
  std::optional<Instant> at_;
  bool stopping_ = false;
  std::condition_variable changed_;
  std::thread thread_;
};

}  // namespace taas::data
