#pragma once

#include <ATen/core/Tensor.h>

namespace taas {

/// What training changes beside the parameters; undefined where it is not tracked.
struct RunningStatistics {
  at::Tensor mean, variance;
  double momentum = 0;
};

/// Of the batches of all ranks, [channels] each, and how many numbers a channel has on each rank.
struct ChannelStatistics {
  at::Tensor mean, inverse_deviation, counts;
};

/// Of the batch of one rank, [channels] each.
struct BackwardSums {
  at::Tensor gradients;            ///< of the output
  at::Tensor gradients_times_xmu;  ///< times input minus mean
  at::Tensor weight, bias;         ///< their gradients
};

/// The arithmetic of synchronised batch normalisation: `input` and gradients are [batch, channels, …], not empty.
class NormKernels {
 public:
  virtual ~NormKernels() = default;

  /// What a rank tells the others of its batch: [2 * channels + 1], the last number being how many numbers each channel
  /// has. Of an empty batch they are all 0.
  [[nodiscard]] virtual at::Tensor summary(const at::Tensor& input, double eps) const = 0;
  /// From the summaries of all ranks, [ranks, 2 * channels + 1]; updates what is running. `input` may be empty.
  [[nodiscard]] virtual ChannelStatistics combined(const at::Tensor& summaries, const at::Tensor& input,
                                                   const RunningStatistics& running, double eps) const = 0;
  [[nodiscard]] virtual at::Tensor normalised(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                                              const ChannelStatistics& statistics, double eps) const = 0;

  [[nodiscard]] virtual BackwardSums sums(const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& weight,
                                          const ChannelStatistics& statistics) const = 0;
  /// Like the sums of a batch, [2 * channels], without one.
  [[nodiscard]] virtual at::Tensor no_sums(const at::Tensor& input) const = 0;
  /// `sums` are those over all ranks.
  [[nodiscard]] virtual at::Tensor input_gradient(const at::Tensor& gradient, const at::Tensor& input,
                                                  const at::Tensor& weight, const ChannelStatistics& statistics,
                                                  const BackwardSums& sums) const = 0;
};

/// torch's kernels for GPUs.
const NormKernels& gpu_norm_kernels();
/// Plain operations, for the CPU: the same formulas.
const NormKernels& cpu_norm_kernels();

inline const NormKernels& norm_kernels_for(const at::Tensor& input) {
  return input.is_cpu() ? cpu_norm_kernels() : gpu_norm_kernels();
}

}  // namespace taas
