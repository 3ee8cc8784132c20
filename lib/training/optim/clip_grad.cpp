#include "taas/clip_grad.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/native/ForeachUtils.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <optional>
#include <string>

#include "taas/error.hpp"

namespace taas {
namespace {

/// Gradients in lists of one device and type each, in the order in which Python has them: torch's own function makes
/// both.
std::vector<std::vector<at::Tensor>> by_device_and_type(const std::vector<std::optional<at::Tensor>>& gradients) {
  std::vector<std::vector<at::Tensor>> lists;
  for (const auto& entry : at::native::_group_tensors_by_first_tensors_device_and_dtype({gradients}, false)) {
    auto& list = lists.emplace_back();
    for (const auto& gradient : entry.second.first.front()) list.push_back(*gradient);
  }
  return lists;
}

void check_finite(const at::Tensor& norm, double norm_type) {
  const auto value = norm.item<double>();
  if (std::isfinite(value)) return;
  throw InvalidArgument("the total norm of the gradients, of order " + std::to_string(norm_type) + ", is " +
                        std::to_string(value) +
                        ", so that they cannot be clipped; without error_if_nonfinite they are scaled by it");
}

}  // namespace

at::Tensor clip_grad_norm_(const std::vector<at::Tensor>& parameters, double max_norm, const ClipGradOptions& options) {
  const at::NoGradGuard no_grad;
  std::vector<std::optional<at::Tensor>> gradients;
  for (const auto& parameter : parameters) {
    if (parameter.grad().defined()) gradients.emplace_back(parameter.grad());
  }
  if (gradients.empty()) return at::zeros({});
  const auto lists = by_device_and_type(gradients);
  std::vector<at::Tensor> norms;
  for (const auto& list : lists) {
    for (const auto& norm : at::_foreach_norm(list, options.norm_type))
      norms.push_back(norm.to(gradients.front()->device()));
  }
  auto total = at::linalg_vector_norm(at::stack(norms), options.norm_type);
  if (options.error_if_nonfinite) check_finite(total, options.norm_type);
  const auto factor = at::clamp((total + 1e-6).reciprocal() * max_norm, std::nullopt, 1.0);
  for (const auto& list : lists) at::_foreach_mul_(list, factor.to(list.front().device()));
  return total;
}

}  // namespace taas
