#pragma once

#include <ATen/core/TensorBody.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "base/memory.hpp"

namespace taas {

/// Sums of small CPU tensors through memory that all ranks of a group share, on one machine. Each rank copies its
/// tensor into the memory, waits until the others have done so, and adds all of them itself: the sum is there when the
/// call returns, with gloo's own bits and without its threads, sockets and 2 (n - 1) steps.
///
/// A rank has two slots, used in turn. It may write into one again as soon as all ranks have given their part of the
/// sum in between: then they are through with the sum before.
class SharedSums {
 public:
  /// What each of `ranks` adds is read by all: that bounds the size.
  static std::size_t most_bytes(int ranks);
  static std::size_t memory_bytes(int ranks);

  /// `memory` has memory_bytes() and is zero at first; `processes` are pidfds of all ranks.
  SharedSums(Mapping memory, int rank, std::vector<Fd> processes, std::chrono::milliseconds timeout);
  ~SharedSums() { leave(); }
  SharedSums(const SharedSums&) = delete;
  SharedSums& operator=(const SharedSums&) = delete;

  /// Whether a tensor is small, dense, on the CPU and of float or double.
  [[nodiscard]] bool take(const at::Tensor& tensor) const;
  /// Sums in place. Throws std::runtime_error: a rank is gone, has left, gives something else, or is too late.
  void sum(at::Tensor& tensor);
  /// The others need not wait for this rank any longer; a sum() in another thread fails. May be called at any time.
  void leave();

 private:
  struct Part;

  Part& part(int rank) const;
  /// The slot of this sum.
  std::byte* values(int rank) const;
  void give(const at::Tensor& tensor);
  void wait_for(int rank);
  void sleep_until_given(int rank) const;
  [[nodiscard]] bool has_given(int rank) const;
  [[nodiscard]] std::string problem() const;
  void check_same(const at::Tensor& tensor) const;
  template <class Number>
  void add_all(at::Tensor& tensor) const;

  Mapping memory_;
  int rank_;
  int ranks_;
  std::vector<Fd> processes_;
  std::chrono::milliseconds timeout_;
  bool spins_;
  std::uint32_t number_ = 0;  ///< of the sum that is under way, or the last one
};

}  // namespace taas
