#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "data/transport/wakeup.hpp"

namespace taas::data {

/// Wakes the links that wait for memory when there may be some.
class MemoryWaiters {
 public:
  /// To be called before memory is asked for, so that no ring is missed. Holds for one ring.
  void wait(std::shared_ptr<Wakeup> wakeup) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(wakeup));
    any_ = true;
  }
  void ring() {
    if (!any_) return;
    const std::lock_guard lock(mutex_);
    for (const auto& wakeup : waiting_) wakeup->wake();
    waiting_.clear();
    any_ = false;
  }

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<Wakeup>> waiting_;
  std::atomic<bool> any_ = false;
};

}  // namespace taas::data
