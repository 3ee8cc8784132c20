#include <ATen/ATen.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/instancenorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/modules/pooling.h>
#include <torch/nn/modules/rnn.h>
#include <torch/nn/modules/upsampling.h>

#include <functional>
#include <iostream>

#include "peer_tasks.hpp"
#include "taas/checkpoint.hpp"
#include "taas/error.hpp"
#include "taas/linear.hpp"

namespace taas::test {
namespace {

LoadOptions options_in(const std::vector<std::string>& arguments, std::size_t from) {
  LoadOptions options;
  for (std::size_t i = from; i < arguments.size(); ++i) {
    if (arguments[i] == "mapped") options.mapped = true;
    if (arguments[i] == "unchecked") options.check = false;
  }
  return options;
}

/// Reads a file and writes what was in it, or prints why not.
void pass_on(const std::vector<std::string>& arguments) {
  try {
    save_file(arguments.at(1), load_file(arguments.at(0), options_in(arguments, 2)));
  } catch (const Exception& error) {
    std::cout << error.what() << '\n';
  }
}

bool same(const c10::IValue& a, const c10::IValue& b);

bool same_lists(at::ArrayRef<c10::IValue> a, at::ArrayRef<c10::IValue> b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), same);
}

bool same(const c10::IValue& a, const c10::IValue& b) {
  if (a.isTensor()) {
    return b.isTensor() && a.toTensor().dtype() == b.toTensor().dtype() && at::equal(a.toTensor(), b.toTensor());
  }
  if (a.isList()) return b.isList() && same_lists(a.toListRef(), b.toListRef());
  if (a.isTuple()) return b.isTuple() && same_lists(a.toTupleRef().elements(), b.toTupleRef().elements());
  if (!a.isGenericDict()) return a == b;
  if (!b.isGenericDict() || a.toGenericDict().size() != b.toGenericDict().size()) return false;
  for (const auto& entry : a.toGenericDict()) {
    const auto found = b.toGenericDict().find(entry.key());
    if (found == b.toGenericDict().end() || !same(entry.value(), found->value())) return false;
  }
  return true;
}

/// Of each file behind the first: whether it holds what that holds, or why it cannot be read.
void compare_files(const std::vector<std::string>& arguments) {
  const auto whole = load_file(arguments.at(0));
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    try {
      std::cout << (same(whole, load_file(arguments[i])) ? "same" : "DIFFERENT") << '\n';
    } catch (const Exception& error) {
      std::cout << error.what() << '\n';
    }
  }
}

/// Runs a layer as a Python script does, with its parameters and inputs, and adds its output and gradients.
template <class Layer, class Forward>
void run_layer(const c10::impl::GenericDict& given, const std::string& name, Layer layer, const Forward& forward,
               c10::impl::GenericDict results) {
  const auto of_layer = given.at(name).toGenericDict();
  load_state_dict(*layer, of_layer.at("state"));
  auto input = of_layer.at("input").toTensor();
  if (input.is_floating_point()) input.requires_grad_();
  const auto output = forward(layer, input);
  (output * of_layer.at("weights").toTensor()).sum().backward();
  StateDict made{{"output", output.detach()}};
  if (input.is_floating_point()) made["input.grad"] = input.grad();
  for (const auto& item : layer->named_parameters()) made[item.key() + ".grad"] = item.value().grad();
  for (const auto& item : layer->named_buffers()) made[item.key()] = item.value();
  for (const auto& [key, tensor] : made) results.insert(name + "/" + key, tensor);
}

void run_layers(const std::vector<std::string>& arguments) {
  namespace nn = torch::nn;
  at::set_num_threads(1);
  const auto given = load_file(arguments.at(0)).toGenericDict();
  c10::impl::GenericDict results(c10::AnyType::get(), c10::AnyType::get());
  const auto plain = [](auto& layer, const at::Tensor& input) { return layer->forward(input); };
  const auto first = [](auto& layer, const at::Tensor& input) { return std::get<0>(layer->forward(input)); };
  const auto run = [&](const std::string& name, auto layer, const auto& forward) {
    run_layer(given, name, layer, forward, results);
  };
  run("linear of two dimensions", nn::Linear(8, 6), plain);
  run("taas linear of two dimensions", Linear(8, 6), plain);
  run("taas linear of three dimensions", Linear(8, 6), plain);
  run("taas linear without bias", Linear(nn::LinearOptions(8, 6).bias(false)), plain);
  run("embedding", nn::Embedding(11, 8), plain);
  run("layer norm", nn::LayerNorm(nn::LayerNormOptions({8})), plain);
  run("group norm", nn::GroupNorm(2, 8), plain);
  run("batch norm", nn::BatchNorm1d(8), plain);
  run("batch norm of images", nn::BatchNorm2d(8), plain);
  run("instance norm", nn::InstanceNorm2d(nn::InstanceNorm2dOptions(8).affine(true)), plain);
  run("convolution", nn::Conv2d(nn::Conv2dOptions(8, 6, 3).stride(2).padding(1)), plain);
  run("convolution with reflection", nn::Conv2d(nn::Conv2dOptions(8, 6, 3).padding(1).padding_mode(torch::kReflect)),
      plain);
  run("convolution in groups", nn::Conv2d(nn::Conv2dOptions(8, 8, 3).groups(4)), plain);
  run("convolution of sequences", nn::Conv1d(nn::Conv1dOptions(8, 6, 3).dilation(2)), plain);
  run("transposed convolution", nn::ConvTranspose2d(nn::ConvTranspose2dOptions(8, 6, 3).stride(2)), plain);
  run("lstm", nn::LSTM(nn::LSTMOptions(8, 6).num_layers(2).batch_first(true)), first);
  run("gru", nn::GRU(nn::GRUOptions(8, 6).bidirectional(true)), first);
  run("rnn", nn::RNN(nn::RNNOptions(8, 6).nonlinearity(torch::kReLU)), first);
  run("gelu", nn::GELU(), plain);
  run("gelu by tanh", nn::GELU(nn::GELUOptions().approximate("tanh")), plain);
  run("silu", nn::SiLU(), plain);
  run("softmax", nn::Softmax(-1), plain);
  run("prelu", nn::PReLU(), plain);
  run("max pool", nn::MaxPool2d(2), plain);
  run("average pool", nn::AvgPool2d(2), plain);
  run("adaptive pool", nn::AdaptiveAvgPool2d(3), plain);
  run("upsample",
      nn::Upsample(
          nn::UpsampleOptions().scale_factor(std::vector<double>{2, 2}).mode(torch::kBilinear).align_corners(false)),
      plain);
  save_file(arguments.at(1), results);
}

}  // namespace

PeerTasks file_peer_tasks() {
  return {{"pass-on", {"FROM TO [mapped] [unchecked]", pass_on}},
          {"compare", {"WHOLE FILE…", compare_files}},
          {"layers", {"FROM TO", run_layers}}};
}

}  // namespace taas::test
