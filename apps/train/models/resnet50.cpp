#include "resnet50.hpp"

#include <torch/nn/functional/pooling.h>
#include <torch/nn/init.h>
#include <torch/utils.h>

#include <utility>
#include <vector>

namespace taas::train {
namespace {

constexpr std::int64_t kExpansion = 4;  // of the channels in a block

torch::nn::Conv2d convolution(std::int64_t in, std::int64_t out, std::int64_t size, std::int64_t stride) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, size).stride(stride).padding(size / 2).bias(false));
}

/// Three convolutions beside a shortcut.
class BottleneckImpl : public torch::nn::Module {
 public:
  BottleneckImpl(std::int64_t in, std::int64_t width, std::int64_t stride)
      : conv1(register_module("conv1", convolution(in, width, 1, 1))),
        bn1(register_module("bn1", torch::nn::BatchNorm2d(width))),
        conv2(register_module("conv2", convolution(width, width, 3, stride))),
        bn2(register_module("bn2", torch::nn::BatchNorm2d(width))),
        conv3(register_module("conv3", convolution(width, width * kExpansion, 1, 1))),
        bn3(register_module("bn3", torch::nn::BatchNorm2d(width * kExpansion))) {
    if (stride == 1 && in == width * kExpansion) return;
    downsample = register_module("downsample", torch::nn::Sequential(convolution(in, width * kExpansion, 1, stride),
                                                                     torch::nn::BatchNorm2d(width * kExpansion)));
  }

  torch::Tensor forward(const torch::Tensor& x) {
    auto y = bn1(conv1(x)).relu_();
    y = bn2(conv2(y)).relu_();
    y = bn3(conv3(y));
    return (y + (downsample.is_empty() ? x : downsample->forward(x))).relu_();
  }

 private:
  torch::nn::Conv2d conv1;
  torch::nn::BatchNorm2d bn1;
  torch::nn::Conv2d conv2;
  torch::nn::BatchNorm2d bn2;
  torch::nn::Conv2d conv3;
  torch::nn::BatchNorm2d bn3;
  torch::nn::Sequential downsample = nullptr;
};
TORCH_MODULE(Bottleneck);

torch::nn::Sequential blocks(std::int64_t in, std::int64_t width, int count, std::int64_t stride) {
  torch::nn::Sequential layer{Bottleneck(in, width, stride)};
  for (int block = 1; block < count; ++block) layer->push_back(Bottleneck(width * kExpansion, width, 1));
  return layer;
}

/// Where the tensors of a module are.
c10::Device device_of(const torch::nn::Module& module) { return module.parameters().front().device(); }

}  // namespace

ResNet50Impl::ResNet50Impl() {
  conv1 =
      register_module("conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 64, 7).stride(2).padding(3).bias(false)));
  bn1 = register_module("bn1", torch::nn::BatchNorm2d(64));
  layer1 = register_module("layer1", blocks(64, 64, 3, 1));
  layer2 = register_module("layer2", blocks(256, 128, 4, 2));
  layer3 = register_module("layer3", blocks(512, 256, 6, 2));
  layer4 = register_module("layer4", blocks(1024, 512, 3, 2));
  fc = register_module("fc", torch::nn::Linear(2048, kResNetClasses));
  for (const auto& module : modules(/*include_self=*/false)) {
    if (const auto* layer = module->as<torch::nn::Conv2dImpl>()) {
      torch::nn::init::kaiming_normal_(layer->weight, 0, torch::kFanOut, torch::kReLU);
    }
  }
}

void ResNet50Impl::cut(c10::Device first, c10::Device second, std::int64_t split_size) {
  for (torch::nn::Module* part :
       std::initializer_list<torch::nn::Module*>{conv1.get(), bn1.get(), layer1.get(), layer2.get()}) {
    part->to(first);
  }
  for (torch::nn::Module* part : std::initializer_list<torch::nn::Module*>{layer3.get(), layer4.get(), fc.get()}) {
    part->to(second);
  }
  split_size_ = split_size;
}

torch::Tensor ResNet50Impl::first_half(torch::Tensor x) {
  x = bn1(conv1(x)).relu_();
  x = torch::max_pool2d(x, 3, 2, 1);
  return layer2->forward(layer1->forward(x)).to(device_of(*fc));
}

torch::Tensor ResNet50Impl::second_half(torch::Tensor x) {
  x = layer4->forward(layer3->forward(x));
  return fc(torch::adaptive_avg_pool2d(x, {1, 1}).flatten(1));
}

torch::Tensor ResNet50Impl::forward(torch::Tensor x) {
  x = x.to(device_of(*conv1));
  return split_size_ > 0 ? pipelined(x) : second_half(first_half(std::move(x)));
}

/// GPUs work off what they are asked for while the program asks for more: the second half of a part is asked for before
/// the first half of the next one, and both run at the same time.
torch::Tensor ResNet50Impl::pipelined(const torch::Tensor& x) {
  std::vector<torch::Tensor> outputs;
  torch::Tensor between;
  for (const auto& part : x.split(split_size_)) {
    if (between.defined()) outputs.push_back(second_half(between));
    between = first_half(part);
  }
  outputs.push_back(second_half(between));
  return torch::cat(outputs);
}

}  // namespace taas::train
