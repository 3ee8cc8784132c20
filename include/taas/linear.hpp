#pragma once

#include <torch/nn/modules/linear.h>

#include <memory>
#include <optional>

namespace taas {

/// torch::nn::Linear with the numbers of Python's nn.Linear for inputs of any number of dimensions. libtorch's own has
/// them for two dimensions only; for others, such as (batch, length, width), it rounds the product before it adds the
/// bias. It is a torch::nn::Linear for whatever looks for one, with the same options, parameters and initial values.
class LinearImpl : public torch::nn::LinearImpl {
 public:
  using torch::nn::LinearImpl::LinearImpl;
  at::Tensor forward(const at::Tensor& input) { return at::linear(input, weight, bias); }
  std::shared_ptr<torch::nn::Module> clone(const std::optional<torch::Device>& device = std::nullopt) const override {
    const at::NoGradGuard no_grad;
    auto copy = std::make_shared<LinearImpl>(options);
    copy->to(device.value_or(weight.device()), weight.scalar_type());
    auto theirs = copy->parameters();
    const auto own = parameters();
    for (std::size_t i = 0; i < own.size(); ++i) theirs[i].copy_(own[i]).set_requires_grad(own[i].requires_grad());
    copy->train(is_training());
    return copy;
  }
};
TORCH_MODULE(Linear);

}  // namespace taas
