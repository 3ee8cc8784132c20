#pragma once

#include <vector>

#include "base/error.hpp"

namespace taas {

/// Keeps some small descriptor numbers free, for ChildDescriptors. Call it once, before the launcher opens many.
void reserve_child_descriptors();

/// Duplicates of the descriptors that a child process is to have, with numbers below which there is little else. The
/// child copies the table up to limit() only: what a start costs does not depend on how many other processes are being
/// watched.
class ChildDescriptors {
 public:
  /// The duplicates have numbers of at least `least`, out of the way of those that the child moves them to.
  explicit ChildDescriptors(int least) : least_(least) {}
  ~ChildDescriptors();
  ChildDescriptors(const ChildDescriptors&) = delete;
  ChildDescriptors& operator=(const ChildDescriptors&) = delete;

  /// The number of the duplicate, which is closed with this. It may be a smaller number than before, or any.
  Result<int> add(int descriptor);
  /// The child needs this descriptor under the number that it has.
  void keep(int descriptor);
  /// One more than the largest number that the child needs.
  [[nodiscard]] int limit() const { return limit_; }

 private:
  int least_;
  int limit_ = 3;
  std::vector<int> reserved_;  // of ours, to be given back
  std::vector<int> others_;    // to be closed
};

}  // namespace taas
