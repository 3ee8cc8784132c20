#pragma once

#include <sched.h>

#include <cstddef>
#include <vector>

namespace taas {

/// CPUs as the kernel takes them. Made before a fork, applied by the child too: that allocates nothing.
class CpuMask {
 public:
  explicit CpuMask(const std::vector<int>& cpus) {
    for (int cpu : cpus) {
      const auto word = static_cast<std::size_t>(cpu) / kBits;
      if (word >= words_.size()) words_.resize(word + 1);
      words_[word] |= 1UL << (static_cast<std::size_t>(cpu) % kBits);
    }
  }

  [[nodiscard]] bool empty() const { return words_.empty(); }
  /// To a process, or with 0 to the calling thread; errno says why not.
  [[nodiscard]] bool apply(pid_t pid) const {
    return ::sched_setaffinity(pid, words_.size() * sizeof words_[0],
                               reinterpret_cast<const cpu_set_t*>(words_.data())) == 0;
  }

 private:
  static constexpr std::size_t kBits = 8 * sizeof(unsigned long);
  std::vector<unsigned long> words_;
};

}  // namespace taas
