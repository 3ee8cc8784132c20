#pragma once

#include <ctime>
#include <vector>

#include "base/clock.hpp"
#include "base/fd.hpp"

namespace taas::data {

/// Ends a thread's poll from another thread (an eventfd).
class Wakeup {
 public:
  Wakeup();
  void wake() const;
  /// Forgets the wakes so far.
  void clear() const;
  [[nodiscard]] const Fd& fd() const { return fd_; }

 private:
  Fd fd_;
};

/// What a descriptor is waited for.
enum class Ready { kRead, kWrite, kReadOrWrite };

/// Never negative.
timespec to_timespec(Duration patience);
/// Until the descriptor is ready or has failed, the wakeup was woken, or `patience` is over. True: the descriptor.
bool wait_until_ready(const Fd& fd, Ready what, const Wakeup& wakeup, Duration patience);
/// Only for a wake; false: `patience` was over first.
bool wait_for_wake(const Wakeup& wakeup, Duration patience);

}  // namespace taas::data
