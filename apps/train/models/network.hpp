#pragma once

#include <torch/nn/functional/activation.h>
#include <torch/nn/functional/pooling.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include "tensor_module.hpp"

namespace taas::train {

/// A small convolutional network for digits: images (N, 1, 28, 28) in, log-probabilities (N, 10) out.
class NetworkImpl : public TensorModule {
 public:
  torch::Tensor forward(torch::Tensor x) override {
    x = conv1(x).relu_();
    x = torch::max_pool2d(conv2(x), 2).relu_();  // the same as the pool of the relu, on a quarter of the numbers
    x = dropout1(x).flatten(1);
    x = batchnorm(fc1(x)).relu_();
    return torch::log_softmax(fc2(dropout2(x)), 1);
  }

 private:
  torch::nn::Conv2d conv1 = register_module("conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 32, 3)));
  torch::nn::Conv2d conv2 = register_module("conv2", torch::nn::Conv2d(torch::nn::Conv2dOptions(32, 64, 3)));
  torch::nn::Dropout2d dropout1 = register_module("dropout1", torch::nn::Dropout2d(0.25));
  torch::nn::Linear fc1 = register_module("fc1", torch::nn::Linear(9216, 128));
  torch::nn::BatchNorm1d batchnorm = register_module("batchnorm", torch::nn::BatchNorm1d(128));
  torch::nn::Dropout dropout2 = register_module("dropout2", torch::nn::Dropout(0.5));
  torch::nn::Linear fc2 = register_module("fc2", torch::nn::Linear(128, 10));
};
TORCH_MODULE(Network);

}  // namespace taas::train
