#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/var_mean.h>
#include <ATen/ops/zeros.h>

#include <vector>

#include "training/norm/norm_kernels.hpp"

// With n numbers of a channel on a rank, their mean m and sum of squared deviations s, over all ranks
// N = sum n, M = sum(n m) / N, S = sum(s + n (m - M)^2): Chan, Golub and LeVeque 1983. The gradients are those of
// Ioffe and Szegedy 2015 (arXiv:1502.03167).

namespace taas {
namespace {

/// What is computed in: float64 for that, otherwise float32.
c10::ScalarType computing_type(const at::Tensor& input) {
  return input.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

/// All dimensions but that of the channels.
std::vector<std::int64_t> reduced_dimensions(const at::Tensor& input) {
  std::vector<std::int64_t> dimensions{0};
  for (std::int64_t dimension = 2; dimension < input.dim(); ++dimension) dimensions.push_back(dimension);
  return dimensions;
}

/// [channels] in the form that goes with `input`.
at::Tensor beside(const at::Tensor& input, const at::Tensor& channels) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(input.dim()), 1);
  shape[1] = -1;
  return channels.to(computing_type(input)).view(shape);
}

at::Tensor scale_of(const ChannelStatistics& statistics, const at::Tensor& weight) {
  return weight.defined() ? statistics.inverse_deviation * weight : statistics.inverse_deviation;
}

class CpuNormKernels : public NormKernels {
 public:
  [[nodiscard]] at::Tensor summary(const at::Tensor& input, double /*eps*/) const override {
    const auto channels = input.size(1);
    const auto numbers = at::TensorOptions(at::kDouble);
    if (input.numel() == 0) return at::zeros({2 * channels + 1}, numbers);
    const auto each = input.numel() / channels;
    const auto count = static_cast<double>(each);
    const auto [variance, mean] = at::var_mean(input.to(computing_type(input)), reduced_dimensions(input), false);
    return at::cat({mean.to(at::kDouble), variance.to(at::kDouble) * count, at::full({1}, count, numbers)});
  }

  [[nodiscard]] ChannelStatistics combined(const at::Tensor& summaries, const at::Tensor& input,
                                           const RunningStatistics& running, double eps) const override {
    const auto parts = summaries.split(input.size(1), 1);
    const auto& means = parts[0];
    const auto& counts = parts[2];
    const auto total = counts.sum();
    const auto mean = (means * counts).sum(0) / total;
    const auto squares = (parts[1] + counts * (means - mean).square()).sum(0);
    update(running.mean, mean, running.momentum);
    update(running.variance, squares / (total - 1), running.momentum);
    return {mean, (squares / total + eps).rsqrt(), counts};
  }

  [[nodiscard]] at::Tensor normalised(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                                      const ChannelStatistics& statistics, double /*eps*/) const override {
    auto output = (input - beside(input, statistics.mean)) * beside(input, scale_of(statistics, weight));
    if (bias.defined()) output += beside(input, bias);
    return output.to(input.scalar_type());
  }

  [[nodiscard]] BackwardSums sums(const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& weight,
                                  const ChannelStatistics& statistics) const override {
    const auto dimensions = reduced_dimensions(input);
    const auto xmu = input - beside(input, statistics.mean);
    const auto gradients = gradient.sum(dimensions, false, at::kDouble);
    const auto times_xmu = (gradient * xmu).sum(dimensions, false, at::kDouble);
    if (!weight.defined()) return {gradients, times_xmu, {}, {}};
    const auto type = weight.scalar_type();
    return {gradients, times_xmu, (times_xmu * statistics.inverse_deviation).to(type), gradients.to(type)};
  }

  [[nodiscard]] at::Tensor no_sums(const at::Tensor& input) const override {
    return at::zeros({2 * input.size(1)}, at::TensorOptions(at::kDouble));
  }

  [[nodiscard]] at::Tensor input_gradient(const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& weight,
                                          const ChannelStatistics& statistics,
                                          const BackwardSums& sums) const override {
    const auto total = statistics.counts.sum();
    const auto slope = sums.gradients_times_xmu / total * statistics.inverse_deviation.square();
    const auto xmu = input - beside(input, statistics.mean);
    const auto centred = gradient - beside(input, sums.gradients / total) - xmu * beside(input, slope);
    return (centred * beside(input, scale_of(statistics, weight))).to(input.scalar_type());
  }

 private:
  static void update(const at::Tensor& running, const at::Tensor& now, double momentum) {
    if (running.defined()) running.mul_(1 - momentum).add_(now.to(running.scalar_type()), momentum);
  }
};

}  // namespace

const NormKernels& cpu_norm_kernels() {
  static const CpuNormKernels kernels;
  return kernels;
}

}  // namespace taas
