#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

namespace taas::test {

/// A small model and batches that the Python scripts make as well.
struct TrainedModel {
  torch::nn::Sequential model{torch::nn::Linear(3, 4), torch::nn::BatchNorm1d(4), torch::nn::Linear(4, 2)};

  /// `type`: of all parameters and buffers.
  void start(at::ScalarType type = at::kFloat) {
    model->to(type);
    const torch::NoGradGuard no_grad;
    for (auto& parameter : model->parameters())
      parameter.copy_(torch::linspace(-1, 1, parameter.numel()).view_as(parameter));
  }
  static at::Tensor batch(int number) { return torch::linspace(-1, 2 + number, 18).view({6, 3}); }
};

}  // namespace taas::test
