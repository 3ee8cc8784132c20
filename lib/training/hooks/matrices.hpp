#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace taas {

/// Gradients as matrices (count, rows, columns), each a view of its gradient or, of several with the same shape, a copy
/// that write_back() brings home.
class Matrices {
 public:
  /// `gradients`: each (rows, columns). Those of one shape come after each other, in the order of the first of each.
  Matrices(const std::vector<at::Tensor>& gradients, bool batch_same_shapes);

  const std::vector<at::Tensor>& tensors() const { return tensors_; }
  void write_back() const;

 private:
  void add(const std::vector<at::Tensor>& of_one_shape, bool batch);

  std::vector<at::Tensor> tensors_;
  std::vector<std::vector<at::Tensor>> gradients_;  ///< of each tensor
};

/// Views into `memory`, one after the other: for each matrix (count, rows, rank), or (count, columns, rank) for
/// `dimension` 2. No rank is above a matrix's own sizes.
std::vector<at::Tensor> factors_in(const at::Tensor& memory, const std::vector<at::Tensor>& matrices,
                                   std::int64_t dimension, std::int64_t rank);

}  // namespace taas
