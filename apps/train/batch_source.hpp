#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "digits.hpp"
#include "options.hpp"

namespace taas::train {

struct Batch {
  at::Tensor inputs;
  at::Tensor labels;
};

/// What a model learns from, all of it on one device.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  [[nodiscard]] virtual std::int64_t size() const = 0;
  /// `indices`: int64 (n), on any device; on that of the source nothing is copied from the CPU.
  [[nodiscard]] virtual Batch batch(const at::Tensor& indices) const = 0;
  /// The mean over the batch; `output` and `labels` are on one device.
  [[nodiscard]] virtual at::Tensor loss(const at::Tensor& output, const at::Tensor& labels) const = 0;
};

/// Images float (n, 1, 28, 28), mean 0 and deviation 1, and labels int64 (n). A batch is one index_select.
std::unique_ptr<BatchSource> make_digit_source(const DigitSet& digits, c10::Device device);

/// As many random examples as --train-images says, of the shapes that the model wants; the same on every rank.
std::unique_ptr<BatchSource> make_random_source(const Options& options, c10::Device device);

}  // namespace taas::train
