#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace taas::data {

struct CopyPart {
  std::byte* to = nullptr;
  std::span<const std::byte> from;
};

/// A copy that some threads of this process make while the caller goes on, around the caches (stream_copy). What is
/// little is copied at once. All memory has to stay until it is done.
class BackgroundCopy {
 public:
  /// The ranges must not overlap.
  explicit BackgroundCopy(const std::vector<CopyPart>& parts);
  /// Waits; in a forked child, where nobody copies, it does not.
  ~BackgroundCopy();
  BackgroundCopy(const BackgroundCopy&) = delete;
  BackgroundCopy& operator=(const BackgroundCopy&) = delete;

  /// Returns when all is there, and lends a hand until then.
  void wait();

 private:
  struct Job;
  std::shared_ptr<Job> job_;
};

}  // namespace taas::data
