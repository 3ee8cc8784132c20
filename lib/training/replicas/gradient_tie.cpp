#include "training/replicas/gradient_tie.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/variable.h>

namespace taas {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class Replicate : public torch::autograd::Function<Replicate> {
 public:
  /// `copies` is a vector, in which autograd does not look for inputs.
  static variable_list forward(AutogradContext* context, const at::Tensor& parameter,
                               const std::vector<at::Tensor>& copies) {
    context->set_materialize_grads(false);  // a copy that was not used adds nothing
    context->saved_data["device"] = parameter.device();
    variable_list aliases;
    for (const auto& copy : copies) aliases.push_back(copy.detach());
    return aliases;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto device = context->saved_data["device"].toDevice();
    at::Tensor sum;
    for (const auto& gradient : gradients) {
      if (!gradient.defined()) continue;
      const auto here = gradient.to(device);
      sum = sum.defined() ? sum + here : here;
    }
    return {sum, at::Tensor()};
  }
};

}  // namespace

void tie_gradients(const at::Tensor& parameter, const std::vector<at::Tensor>& copies) {
  namespace impl = torch::autograd::impl;
  if (!c10::GradMode::is_enabled() || !parameter.requires_grad()) {
    for (const auto& copy : copies) impl::set_gradient_edge(copy, torch::autograd::Edge());
    return;
  }
  const auto aliases = Replicate::apply(parameter, copies);
  for (std::size_t i = 0; i < copies.size(); ++i) impl::set_gradient_edge(copies[i], impl::gradient_edge(aliases[i]));
}

}  // namespace taas
