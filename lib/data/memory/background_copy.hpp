#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <span>
#include <thread>
#include <vector>

namespace taas::data {

/// A copy of several pieces of memory that is made in the background, past the caches, by threads that begin and end
/// with it. A small one is made at once. All memory has to stay until it is done.
class BackgroundCopy {
 public:
  struct Part {
    std::byte* to = nullptr;
    std::span<const std::byte> from;
  };

  explicit BackgroundCopy(const std::vector<Part>& parts);
  /// Waits.
  ~BackgroundCopy();
  BackgroundCopy(const BackgroundCopy&) = delete;
  BackgroundCopy& operator=(const BackgroundCopy&) = delete;

  [[nodiscard]] bool is_done() const { return done_ == pieces_.size(); }
  /// Copies what nobody has begun with, and waits for the rest. For one thread at a time. In a forked child it does
  /// nothing: the threads, and what they copy into, are the parent's.
  void wait();

 private:
  void work();

  std::vector<Part> pieces_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<std::size_t> done_ = 0;
  std::vector<std::thread> threads_;
  const pid_t process_;
};

}  // namespace taas::data
