#include "training/norm/sync_norm.hpp"

#include <ATen/TensorIndexing.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/batch_norm_backward_elemt.h>
#include <ATen/ops/batch_norm_backward_reduce.h>
#include <ATen/ops/batch_norm_elemt.h>
#include <ATen/ops/batch_norm_gather_stats_with_counts.h>
#include <ATen/ops/batch_norm_stats.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/var_mean.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "taas/collectives.hpp"

// A GPU has torch's kernels, in the order of torch/nn/modules/_functions.py. The CPU has the same formulas in plain
// operations: with n numbers of a channel on a rank, their mean m and sum of squared deviations s, over all ranks
// N = sum n, M = sum(n m) / N, S = sum(s + n (m - M)^2): Chan, Golub and LeVeque 1983. The gradients are those of Ioffe
// and Szegedy 2015 (arXiv:1502.03167).

namespace taas {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Of the batches of all ranks, [channels] each, and how many numbers a channel has on each rank.
struct ChannelStatistics {
  at::Tensor mean, inverse_deviation, counts;
};

/// Of the batch of one rank.
struct BackwardSums {
  at::Tensor of_output;     ///< [2 * channels]: gradients of the output, then these times input minus mean
  at::Tensor weight, bias;  ///< their gradients
};

/// What the CPU computes in: float64 for that, otherwise float32.
c10::ScalarType computing_type(const at::Tensor& input) {
  return input.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

/// Of what a rank without a batch sends, and on the CPU of all that ranks send.
at::TensorOptions sent_options(const at::Tensor& input) {
  return input.is_cpu() ? at::TensorOptions(at::kDouble) : input.options();
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

void update_running(const at::Tensor& running, const at::Tensor& now, double momentum) {
  if (running.defined()) running.mul_(1 - momentum).add_(now.to(running.scalar_type()), momentum);
}

/// What a rank tells the others of its batch, [2 * channels + 1]: means, sums of squared deviations (on a GPU inverse
/// deviations), and how many numbers each channel has. Of an empty batch they are all 0.
at::Tensor batch_summary(const at::Tensor& input, double eps) {
  const auto channels = input.size(1);
  if (input.numel() == 0) return at::zeros({2 * channels + 1}, sent_options(input));
  const auto count = static_cast<double>(input.numel() / channels);
  if (!input.is_cpu()) {
    const auto [mean, inverse_deviation] = at::batch_norm_stats(input, eps);
    return at::cat({mean, inverse_deviation, at::full({1}, count, mean.options())});
  }
  const auto [variance, mean] = at::var_mean(input.to(computing_type(input)), reduced_dimensions(input), false);
  return at::cat({mean.to(at::kDouble), variance.to(at::kDouble) * count, at::full({1}, count, sent_options(input))});
}

/// From the summaries of all ranks, [ranks, 2 * channels + 1]; updates what is running. `input` may be empty.
ChannelStatistics combined_statistics(const at::Tensor& summaries, const at::Tensor& input,
                                      const RunningStatistics& running, double eps) {
  auto parts = summaries.split(input.size(1), 1);
  if (!input.is_cpu()) {
    const auto has_input = parts[2].squeeze(-1) >= 1;
    for (auto& part : parts) part = part.index({has_input});
    auto counts = parts[2].reshape({-1});
    if (running.mean.defined()) counts = counts.to(running.mean.scalar_type());
    const auto [mean, inverse_deviation] = at::batch_norm_gather_stats_with_counts(
        input, parts[0], parts[1], running.mean, running.variance, running.momentum, eps, counts);
    return {mean, inverse_deviation, parts[2].to(at::kInt)};
  }
  const auto &means = parts[0], &counts = parts[2];
  const auto total = counts.sum();
  const auto mean = (means * counts).sum(0) / total;
  const auto squares = (parts[1] + counts * (means - mean).square()).sum(0);
  update_running(running.mean, mean, running.momentum);
  update_running(running.variance, squares / (total - 1), running.momentum);
  return {mean, (squares / total + eps).rsqrt(), counts};
}

at::Tensor normalised(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                      const ChannelStatistics& statistics, double eps) {
  if (!input.is_cpu())
    return at::batch_norm_elemt(input, weight, bias, statistics.mean, statistics.inverse_deviation, eps);
  auto output = (input - beside(input, statistics.mean)) * beside(input, scale_of(statistics, weight));
  if (bias.defined()) output += beside(input, bias);
  return output.to(input.scalar_type());
}

BackwardSums backward_sums(const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& weight,
                           const ChannelStatistics& statistics) {
  const bool has_weight = weight.defined();
  if (!input.is_cpu()) {
    const auto [gradients, times_xmu, of_weight, of_bias] = at::batch_norm_backward_reduce(
        gradient, input, statistics.mean, statistics.inverse_deviation, weight, true, has_weight, has_weight);
    return {at::cat({gradients, times_xmu}), of_weight, of_bias};
  }
  const auto dimensions = reduced_dimensions(input);
  const auto xmu = input - beside(input, statistics.mean);
  const auto gradients = gradient.sum(dimensions, false, at::kDouble);
  const auto times_xmu = (gradient * xmu).sum(dimensions, false, at::kDouble);
  const auto both = at::cat({gradients, times_xmu});
  if (!has_weight) return {both, {}, {}};
  const auto type = weight.scalar_type();
  return {both, (times_xmu * statistics.inverse_deviation).to(type), gradients.to(type)};
}

/// `sums` [2 * channels] are BackwardSums::of_output over all ranks.
at::Tensor input_gradient(const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& weight,
                          const ChannelStatistics& statistics, const at::Tensor& sums) {
  const auto parts = sums.split(input.size(1));
  const auto &gradients = parts[0], &times_xmu = parts[1];
  if (!input.is_cpu()) {
    const auto scale = weight.defined() ? weight.to(statistics.mean.scalar_type()) : weight;
    return at::batch_norm_backward_elemt(gradient, input, statistics.mean, statistics.inverse_deviation, scale,
                                         gradients, times_xmu, statistics.counts);
  }
  const auto total = statistics.counts.sum();
  const auto slope = times_xmu / total * statistics.inverse_deviation.square();
  const auto xmu = input - beside(input, statistics.mean);
  const auto centred = gradient - beside(input, gradients / total) - xmu * beside(input, slope);
  return (centred * beside(input, scale_of(statistics, weight))).to(input.scalar_type());
}

/// Under gloo, what is on a GPU goes over the CPU.
at::Tensor on_group(const ProcessGroup& group, const at::Tensor& tensor) {
  return tensor.is_cpu() ? tensor : tensor.to(group.device());
}

at::Tensor gathered(const ProcessGroup& group, const at::Tensor& row) {
  const auto sent = on_group(group, row);
  auto rows = at::empty({group.world_size(), sent.size(0)}, sent.options());
  all_gather(group, rows, sent);
  return rows.to(row.device());
}

at::Tensor summed(const ProcessGroup& group, const at::Tensor& row) {
  auto sum = on_group(group, row);
  all_reduce(group, sum);
  return sum.to(row.device());
}

/// The kernels of GPUs take these two forms.
at::Tensor in_order(const at::Tensor& tensor) {
  const bool channels_last =
      tensor.is_contiguous(at::MemoryFormat::ChannelsLast) || tensor.is_contiguous(at::MemoryFormat::ChannelsLast3d);
  return channels_last ? tensor : tensor.contiguous();
}

/// What a call needs beside tensors.
struct NormCall : torch::CustomClassHolder {
  NormCall(ProcessGroup of, RunningStatistics statistics, double epsilon)
      : group(std::move(of)), running(std::move(statistics)), eps(epsilon) {}
  ProcessGroup group;
  RunningStatistics running;
  double eps;
};

class SyncNormFunction : public torch::autograd::Function<SyncNormFunction> {
 public:
  /// autograd takes no undefined tensors, but optional ones.
  static at::Tensor forward(AutogradContext* context, const at::Tensor& given, const std::optional<at::Tensor>& scale,
                            const std::optional<at::Tensor>& shift, const c10::intrusive_ptr<NormCall>& call) {
    const auto weight = scale.value_or(at::Tensor()), bias = shift.value_or(at::Tensor());
    const auto input = in_order(given);
    const auto summaries = gathered(call->group, batch_summary(input, call->eps));
    const auto statistics = combined_statistics(summaries, input, call->running, call->eps);
    context->save_for_backward({input, weight, statistics.mean, statistics.inverse_deviation, statistics.counts});
    context->saved_data["call"] = c10::IValue::make_capsule(call);
    if (input.numel() == 0) return at::empty_like(input);
    return normalised(input, weight, bias, statistics, call->eps);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto &input = saved[0], &weight = saved[1];
    const auto call = c10::static_intrusive_pointer_cast<NormCall>(context->saved_data["call"].toCapsule());
    const bool wanted = context->needs_input_grad(0);
    if (input.numel() == 0) {
      if (wanted) summed(call->group, at::zeros({2 * input.size(1)}, sent_options(input)));  // the others wait for it
      return {at::empty_like(input), at::Tensor(), at::Tensor(), at::Tensor()};
    }
    const auto gradient = in_order(gradients[0]);
    const ChannelStatistics statistics{saved[2], saved[3], saved[4]};
    const auto sums = backward_sums(gradient, input, weight, statistics);
    at::Tensor of_input;
    if (wanted) of_input = input_gradient(gradient, input, weight, statistics, summed(call->group, sums.of_output));
    return {of_input, sums.weight, sums.bias, at::Tensor()};
  }
};

}  // namespace

at::Tensor sync_norm(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                     const RunningStatistics& running, double eps, const ProcessGroup& group) {
  return SyncNormFunction::apply(input, std::optional(weight), std::optional(bias),
                                 c10::make_intrusive<NormCall>(group, running, eps));
}

}  // namespace taas
