#pragma once

#include <array>
#include <cstddef>

namespace taas {

/// What children of this process add to its own oom_score_adj (a batch system's or systemd's choice, which stays the
/// base): a tenth of the memory that has run out. A launcher is smaller than that wherever training fits, so the kernel
/// takes a rank before the process that can say so. More would have ranks pay for leaks of unrelated processes.
inline constexpr int kOomScoreOfChildren = 100;

/// Has a child, and all that it starts, taken before this process by the kernel's out-of-memory killer.
class ChildOomScore {
 public:
  /// In the parent: reads its own value.
  ChildOomScore();
  /// In the child, between fork and exec: system calls only. Without /proc the child keeps its parent's value.
  void apply() const;

 private:
  std::array<char, 8> text_{};
  std::size_t size_ = 0;  ///< 0: this process's value is not known
};

}  // namespace taas
