// The network of the tests of the sharded optimizer, with its inputs.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>
#include <torch/optim/optimizer.h>

#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "group/scenario_tensors.hpp"

namespace taas::test {

/// Convolution, LSTM, a scalar, sizes that no number of ranks divides, and a branch that may be left out.
struct MixedNetImpl : torch::nn::Module {
  MixedNetImpl() {
    conv = register_module("conv", torch::nn::Conv2d(1, 3, 3));
    lstm = register_module("lstm", torch::nn::LSTM(torch::nn::LSTMOptions(18, 13).batch_first(true)));
    hidden = register_module("hidden", torch::nn::Linear(13, 1031));
    output = register_module("output", torch::nn::Linear(1031, 7));
    extra = register_module("extra", torch::nn::Linear(13, 7));
    scale = register_parameter("scale", torch::ones({}));
  }
  at::Tensor forward(const at::Tensor& images, bool with_extra) {
    auto rows = at::relu(conv->forward(images)).permute({0, 2, 1, 3}).flatten(2);
    auto last = std::get<0>(lstm->forward(rows)).select(1, -1);
    auto scores = output->forward(at::relu(hidden->forward(last))) * scale;
    return with_extra ? scores + extra->forward(last) : scores;
  }
  torch::nn::Conv2d conv = nullptr;
  torch::nn::LSTM lstm = nullptr;
  torch::nn::Linear hidden = nullptr, output = nullptr, extra = nullptr;
  at::Tensor scale;
};
TORCH_MODULE(MixedNet);

inline MixedNet same_net() {
  torch::manual_seed(7);
  MixedNet net;
  net->to(group_device);
  return net;
}

/// Of Adam. On a GPU, where gradients may differ in their last bit, one that is almost 0 must not decide where a step
/// goes.
inline double eps_here() { return group_device.is_cuda() ? 1e-4 : 1e-8; }

inline at::Tensor zero_loss(const at::Tensor& scores, int step, int rank) {
  auto labels = (at::arange(5, here(at::kLong)) * 3 + step + rank) % 7;
  return torch::nn::functional::cross_entropy(scores, labels);
}

inline at::Tensor zero_images(int step, int rank) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(static_cast<std::uint64_t>(100 * step + rank + 1));
  return at::randn({5, 1, 8, 8}, generator).to(group_device);
}

template <class Options>
std::vector<torch::optim::OptimizerParamGroup> decayed_weights(const MixedNet& net, const Options& defaults) {
  std::vector<at::Tensor> weights, others;
  for (const auto& parameter : net->parameters()) (parameter.dim() > 1 ? weights : others).push_back(parameter);
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(weights, std::make_unique<Options>(Options(defaults).weight_decay(0.05)));
  groups.emplace_back(others);
  return groups;
}

inline std::vector<at::Tensor> copies_of(const MixedNet& net) {
  std::vector<at::Tensor> all;
  for (const auto& parameter : net->parameters()) all.push_back(parameter.detach().clone());
  return all;
}

/// Tensors, numbers and what holds them.
inline bool same_values(const c10::IValue& a, const c10::IValue& b, SameTensors same = are_equal) {
  if (a.isTensor()) return b.isTensor() && same(a.toTensor(), b.toTensor());
  if (a.isGenericDict()) {
    const auto left = a.toGenericDict(), right = b.toGenericDict();
    if (left.size() != right.size()) return false;
    for (const auto& entry : left) {
      if (!right.contains(entry.key()) || !same_values(entry.value(), right.at(entry.key()), same)) return false;
    }
    return true;
  }
  if (a.isList()) {
    const auto left = a.toListRef(), right = b.toListRef();
    if (left.size() != right.size()) return false;
    for (std::size_t i = 0; i < left.size(); ++i) {
      if (!same_values(left[i], right[i], same)) return false;
    }
    return true;
  }
  return a == b;
}

}  // namespace taas::test
