#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <vector>

namespace taas {

/// What belongs together: of one example, or of a batch (images and labels, say). On the CPU, strided.
using Tensors = std::vector<at::Tensor>;

/// What batches are made of. Data workers have their own copy, made by the same program; get() is called by one thread
/// at a time. For an index it gives the same wherever it is called, but for what it draws from torch's default CPU
/// generator: that is seeded anew for each batch.
class Dataset {
 public:
  virtual ~Dataset() = default;
  [[nodiscard]] virtual std::size_t size() const = 0;
  virtual Tensors get(std::size_t index) = 0;
};

/// Makes a batch of examples. What is drawn at random is as in Dataset::get.
using Collate = std::function<Tensors(std::vector<Tensors> examples)>;

/// The first tensors of all examples along a new first dimension, then the second ones, and so on. Throws
/// InvalidArgument when the examples differ in number, shape or dtype of their tensors.
Tensors stack(const std::vector<Tensors>& examples);

}  // namespace taas
