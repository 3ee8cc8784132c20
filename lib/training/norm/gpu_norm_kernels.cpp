#include <ATen/TensorOperators.h>
#include <ATen/ops/batch_norm_backward_elemt.h>
#include <ATen/ops/batch_norm_backward_reduce.h>
#include <ATen/ops/batch_norm_elemt.h>
#include <ATen/ops/batch_norm_gather_stats_with_counts.h>
#include <ATen/ops/batch_norm_stats.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include "training/graph/recording.hpp"
#include "training/norm/norm_kernels.hpp"

namespace taas {
namespace {

class GpuNormKernels : public NormKernels {
 public:
  [[nodiscard]] at::Tensor summary(const at::Tensor& input, double eps) const override {
    const auto channels = input.size(1);
    if (input.numel() == 0) return at::zeros({2 * channels + 1}, input.options());
    const auto [mean, inverse_deviation] = at::batch_norm_stats(input, eps);
    const auto each = input.numel() / channels;
    const auto count = at::full({1}, each, mean.options());
    return at::cat({mean, inverse_deviation, count});
  }

  [[nodiscard]] ChannelStatistics combined(const at::Tensor& summaries, const at::Tensor& input,
                                           const RunningStatistics& running, double eps) const override {
    auto parts = summaries.split(input.size(1), 1);
    if (!recording()) leave_out_empty(parts);  // waits for the GPU, which a recording cannot
    auto counts = parts[2].reshape({-1});
    if (running.mean.defined()) counts = counts.to(running.mean.scalar_type());
    auto [mean, inverse_deviation] = at::batch_norm_gather_stats_with_counts(
        input, parts[0], parts[1], running.mean, running.variance, running.momentum, eps, counts);
    return {mean, inverse_deviation, parts[2].to(at::kInt)};
  }

  [[nodiscard]] at::Tensor normalised(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                                      const ChannelStatistics& statistics, double eps) const override {
    return at::batch_norm_elemt(input, weight, bias, statistics.mean, statistics.inverse_deviation, eps);
  }

  [[nodiscard]] BackwardSums sums(const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& weight,
                                  const ChannelStatistics& statistics) const override {
    const bool has_weight = weight.defined();
    auto [gradients, times_xmu, of_weight, of_bias] = at::batch_norm_backward_reduce(
        gradient, input, statistics.mean, statistics.inverse_deviation, weight, true, has_weight, has_weight);
    return {gradients, times_xmu, of_weight, of_bias};
  }

  [[nodiscard]] at::Tensor no_sums(const at::Tensor& input) const override {
    return at::zeros({2 * input.size(1)}, input.options());
  }

  [[nodiscard]] at::Tensor input_gradient(const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& weight,
                                          const ChannelStatistics& statistics,
                                          const BackwardSums& sums) const override {
    const auto scale = weight.defined() ? weight.to(statistics.mean.scalar_type()) : weight;
    return at::batch_norm_backward_elemt(gradient, input, statistics.mean, statistics.inverse_deviation, scale,
                                         sums.gradients, sums.gradients_times_xmu, statistics.counts);
  }

 private:
  static void leave_out_empty(std::vector<at::Tensor>& parts) {
    const auto has_input = parts[2].squeeze(-1) >= 1;
    for (auto& part : parts) part = part.index({has_input});
  }
};

}  // namespace

const NormKernels& gpu_norm_kernels() {
  static const GpuNormKernels kernels;
  return kernels;
}

}  // namespace taas
