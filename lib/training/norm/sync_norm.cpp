#include "training/norm/sync_norm.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

#include <optional>
#include <utility>

#include "taas/collectives.hpp"

namespace taas {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr const char* kCall = "call";

/// What the backward pass needs beside tensors.
struct NormCall : torch::CustomClassHolder {
  NormCall(ProcessGroup of, RunningStatistics statistics, double epsilon)
      : group(std::move(of)), running(std::move(statistics)), eps(epsilon) {}
  ProcessGroup group;
  RunningStatistics running;
  double eps;
};

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

class SyncNormFunction : public torch::autograd::Function<SyncNormFunction> {
 public:
  /// autograd takes no undefined tensors, but optional ones.
  static at::Tensor forward(AutogradContext* context, const at::Tensor& given, const std::optional<at::Tensor>& scale,
                            const std::optional<at::Tensor>& shift, const c10::intrusive_ptr<NormCall>& call) {
    const auto weight = scale.value_or(at::Tensor()), bias = shift.value_or(at::Tensor());
    const auto input = in_order(given);
    const auto& kernels = norm_kernels_for(input);
    const auto summaries = gathered(call->group, kernels.summary(input, call->eps));
    const auto statistics = kernels.combined(summaries, input, call->running, call->eps);
    context->save_for_backward({input, weight, statistics.mean, statistics.inverse_deviation, statistics.counts});
    context->saved_data[kCall] = c10::IValue::make_capsule(call);
    if (input.numel() == 0) return at::empty_like(input);
    return kernels.normalised(input, weight, bias, statistics, call->eps);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto& input = saved[0];
    const auto call = c10::static_intrusive_pointer_cast<NormCall>(context->saved_data[kCall].toCapsule());
    const auto& kernels = norm_kernels_for(input);
    const bool wanted = context->needs_input_grad(0);
    if (input.numel() == 0) {
      if (wanted) summed(call->group, kernels.no_sums(input));  // the others wait for it
      return {at::empty_like(input), at::Tensor(), at::Tensor(), at::Tensor()};
    }
    const auto gradient = in_order(gradients[0]);
    const ChannelStatistics statistics{saved[2], saved[3], saved[4]};
    auto sums = kernels.sums(gradient, input, saved[1], statistics);
    at::Tensor of_input;
    if (wanted) {
      const auto parts = summed(call->group, at::cat({sums.gradients, sums.gradients_times_xmu})).split(input.size(1));
      sums.gradients = parts[0];
      sums.gradients_times_xmu = parts[1];
      of_input = kernels.input_gradient(gradient, input, saved[1], statistics, sums);
    }
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
