#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <cstdint>

#include "tensor_module.hpp"

namespace taas::train {

inline constexpr std::int64_t kResNetClasses = 1000;

/// ResNet-50 (He, Zhang, Ren, Sun 2015, arXiv:1512.03385) with torchvision's names and its place of the strides:
/// state dictionaries fit both ways. Images (N, 3, H, W) in, (N, kResNetClasses) out.
class ResNet50Impl : public TensorModule {
 public:
  ResNet50Impl();

  torch::Tensor forward(torch::Tensor x) override;

 private:
  torch::nn::Conv2d conv1 = nullptr;
  torch::nn::BatchNorm2d bn1 = nullptr;
  torch::nn::Sequential layer1, layer2, layer3, layer4;
  torch::nn::Linear fc = nullptr;
};
TORCH_MODULE(ResNet50);

}  // namespace taas::train
