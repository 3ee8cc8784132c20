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
///
/// It can be cut in two: up to layer2 on one device, the rest on another.
class ResNet50Impl : public TensorModule {
 public:
  ResNet50Impl();

  /// The whole model on one device, or each half on its own.
  torch::Tensor forward(torch::Tensor x) override;

  /// Moves both halves. A positive `split_size` cuts batches into so many images: while the second device computes one
  /// part, the first one computes the next. Batch norm then learns from each part alone; in eval mode results are those
  /// of the whole batch.
  void cut(c10::Device first, c10::Device second, std::int64_t split_size = 0);

 private:
  torch::Tensor first_half(torch::Tensor x);
  torch::Tensor second_half(torch::Tensor x);
  torch::Tensor pipelined(const torch::Tensor& x);

  torch::nn::Conv2d conv1 = nullptr;
  torch::nn::BatchNorm2d bn1 = nullptr;
  torch::nn::Sequential layer1, layer2, layer3, layer4;
  torch::nn::Linear fc = nullptr;
  std::int64_t split_size_ = 0;
};
TORCH_MODULE(ResNet50);

}  // namespace taas::train
