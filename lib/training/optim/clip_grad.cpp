#include "taas/clip_grad.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/native/ForeachUtils.h>
#include <ATen/ops/_foreach_clamp_max.h>
#include <ATen/ops/_foreach_clamp_min.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <string>

#include "taas/collectives.hpp"
#include "taas/error.hpp"

namespace taas {
namespace {

using NormTensors = std::vector<at::Tensor>;

NormTensors grads_of(const NormTensors& parameters) {
  NormTensors grads;
  for (const auto& parameter : parameters) {
    if (parameter.grad().defined()) grads.push_back(parameter.grad());
  }
  return grads;
}

/// Lists of one device and type each, in the order in which Python has them: torch's own function makes both.
std::vector<NormTensors> by_device_and_type(const NormTensors& tensors) {
  if (tensors.empty()) return {};
  std::vector<NormTensors> lists;
  const std::vector<std::optional<at::Tensor>> all(tensors.begin(), tensors.end());
  for (const auto& entry : at::native::_group_tensors_by_first_tensors_device_and_dtype({all}, false)) {
    NormTensors list;
    for (const auto& tensor : entry.second.first.front()) list.push_back(*tensor);
    lists.push_back(std::move(list));
  }
  return lists;
}

at::Tensor local_norm(const NormTensors& tensors, double norm_type) {
  if (tensors.empty()) return at::zeros({});
  NormTensors norms;
  for (const auto& list : by_device_and_type(tensors)) {
    for (const auto& norm : at::_foreach_norm(list, norm_type)) norms.push_back(norm.to(tensors.front().device()));
  }
  return at::linalg_vector_norm(at::stack(norms), norm_type);
}

void check_finite(const at::Tensor& norm, const ClipGradOptions& options) {
  if (!options.error_if_nonfinite) return;
  const auto value = norm.item<double>();
  if (std::isfinite(value)) return;
  throw InvalidArgument("the total norm of the gradients, of order " + std::to_string(options.norm_type) + ", is " +
                        std::to_string(value) +
                        ", so that they cannot be clipped; without error_if_nonfinite they are scaled by it");
}

/// What the ranks reduce: the norm itself where it is an extreme, and otherwise the sum of powers.
at::Tensor norm_over_ranks(const ProcessGroup& group, const at::Tensor& local, double norm_type) {
  auto part = local.to(group.device(), at::kDouble).contiguous();
  if (std::isinf(norm_type)) {
    all_reduce(group, part, norm_type > 0 ? ReduceOp::kMax : ReduceOp::kMin);
    return part;
  }
  part.pow_(norm_type);
  all_reduce(group, part);
  return part.pow_(1.0 / norm_type);
}

}  // namespace

at::Tensor get_total_norm(const std::vector<at::Tensor>& tensors, const ClipGradOptions& options) {
  const at::NoGradGuard no_grad;
  auto norm = local_norm(tensors, options.norm_type);
  check_finite(norm, options);
  return norm;
}

at::Tensor get_total_norm(const ProcessGroup& group, const std::vector<at::Tensor>& tensors,
                          const ClipGradOptions& options) {
  if (options.norm_type == 0)
    throw InvalidArgument("a norm of order 0 cannot be taken over the shards of several ranks");
  const at::NoGradGuard no_grad;
  auto local = local_norm(tensors, options.norm_type);
  if (tensors.empty() && options.norm_type < 0) local.fill_(INFINITY);
  auto norm = norm_over_ranks(group, local, options.norm_type).to(local.options());
  check_finite(norm, options);
  return norm;
}

void clip_grads_with_norm_(const std::vector<at::Tensor>& parameters, double max_norm, const at::Tensor& total_norm) {
  const at::NoGradGuard no_grad;
  const auto factor = at::clamp((total_norm + 1e-6).reciprocal() * max_norm, std::nullopt, 1.0);
  for (const auto& list : by_device_and_type(grads_of(parameters))) {
    at::_foreach_mul_(list, factor.to(list.front().device()));
  }
}

at::Tensor clip_grad_norm_(const std::vector<at::Tensor>& parameters, double max_norm, const ClipGradOptions& options) {
  auto norm = get_total_norm(grads_of(parameters), options);
  clip_grads_with_norm_(parameters, max_norm, norm);
  return norm;
}

at::Tensor clip_grad_norm_(const ProcessGroup& group, const std::vector<at::Tensor>& parameters, double max_norm,
                           const ClipGradOptions& options) {
  auto norm = get_total_norm(group, grads_of(parameters), options);
  clip_grads_with_norm_(parameters, max_norm, norm);
  return norm;
}

void clip_grad_value_(const std::vector<at::Tensor>& parameters, double clip_value) {
  const at::NoGradGuard no_grad;
  for (const auto& list : by_device_and_type(grads_of(parameters))) {
    at::_foreach_clamp_min_(list, -clip_value);
    at::_foreach_clamp_max_(list, clip_value);
  }
}

}  // namespace taas
