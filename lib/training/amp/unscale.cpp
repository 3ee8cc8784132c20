#include "training/amp/unscale.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>

#include <algorithm>

#include "taas/error.hpp"

namespace taas {
namespace {

/// Gradients of one device and type, which one kernel takes.
struct SameKind {
  c10::Device device;
  c10::ScalarType type;
  std::vector<at::Tensor> grads;
};

void add_to(std::vector<SameKind>& kinds, const at::Tensor& grad) {
  if (grad.scalar_type() == at::kHalf)
    throw InvalidArgument(
        "a gradient is in float16 and cannot be unscaled: keep the parameters in float32, and compute under Autocast");
  auto values = grad.is_sparse() ? grad._values() : grad;
  auto found = std::find_if(kinds.begin(), kinds.end(), [&](const SameKind& kind) {
    return kind.device == values.device() && kind.type == values.scalar_type();
  });
  if (found == kinds.end()) found = kinds.insert(kinds.end(), {values.device(), values.scalar_type(), {}});
  found->grads.push_back(values);
}

}  // namespace

std::vector<at::Tensor> unscale_gradients(torch::optim::Optimizer& optimizer, const at::Tensor& inverse_scale,
                                          const at::Tensor& none_found) {
  const at::NoGradGuard no_grad;
  std::vector<SameKind> kinds;
  for (const auto& group : optimizer.param_groups()) {
    for (const auto& parameter : group.params()) {
      if (parameter.grad().defined()) add_to(kinds, parameter.grad());
    }
  }
  std::vector<at::Tensor> found_on;
  for (auto& kind : kinds) {
    auto found = std::find_if(found_on.begin(), found_on.end(),
                              [&](const at::Tensor& tensor) { return tensor.device() == kind.device; });
    if (found == found_on.end()) found = found_on.insert(found_on.end(), none_found.to(kind.device, false, true));
    at::_amp_foreach_non_finite_check_and_unscale_(kind.grads, *found, inverse_scale.to(kind.device));
  }
  return found_on;
}

}  // namespace taas
