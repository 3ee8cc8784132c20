#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/optimizer.h>

namespace taas::test {

/// A small model, batches and steps that trained_model.py has as well.
struct TrainedModel {
  torch::nn::Sequential model{torch::nn::Linear(3, 4), torch::nn::BatchNorm1d(4), torch::nn::Linear(4, 2)};

  void start() {
    const torch::NoGradGuard no_grad;
    for (auto& parameter : model->parameters())
      parameter.copy_(torch::linspace(-1, 1, parameter.numel()).view_as(parameter));
  }
  static at::Tensor batch(int number) { return torch::linspace(-1, 2 + number, 18).view({6, 3}); }

  /// In the first two steps one layer alone gets gradients.
  void step(torch::optim::Optimizer& optimizer, int number) {
    const auto inputs = batch(number % 7).to(model->parameters().front().scalar_type());
    optimizer.zero_grad();
    const auto outputs = number < 2 ? model->ptr<torch::nn::LinearImpl>(0)->forward(inputs) : model->forward(inputs);
    outputs.square().sum().backward();
    optimizer.step();
  }
};

}  // namespace taas::test
