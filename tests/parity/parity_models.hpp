// The models of ddp_parity.py: each but Gan takes (batch, 64) numbers and gives (batch, 10) scores.
// Modules are called in the order of the Python half, one in each expression: backward adds gradients in the order of
// forward, and C++ may evaluate arguments from the right.
#pragma once

#include <ATen/autocast_mode.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "taas/sync_batch_norm.hpp"

namespace parity {

namespace nn = torch::nn;

constexpr int kInputs = 64;
constexpr int kClasses = 10;

/// That of libtorch adds the bias by another operation than Python's, which under autocast rounds otherwise.
struct LinearImpl : nn::LinearImpl {
  using nn::LinearImpl::LinearImpl;
  at::Tensor forward(const at::Tensor& x) {
    const bool mixed = at::autocast::is_autocast_enabled(x.device().type());
    return mixed ? at::linear(x, weight, bias) : nn::LinearImpl::forward(x);
  }
};
TORCH_MODULE(Linear);

struct Model : nn::Module {
  /// `more`: with the branch that is used now and then, where there is one.
  virtual at::Tensor forward(const at::Tensor& x, bool more) = 0;
};

struct Mlp : Model {
  Linear first = register_module("first", Linear(kInputs, 48));
  Linear second = register_module("second", Linear(48, 32));
  Linear output = register_module("output", Linear(32, kClasses));

  at::Tensor forward(const at::Tensor& x, bool) override { return output(at::relu(second(at::relu(first(x))))); }
};

template <class Norm>
struct ConvolutionalWith : Model {
  nn::Conv2d conv = register_module("conv", nn::Conv2d(1, 4, 3));
  Norm norm = register_module("norm", Norm(4));
  Linear hidden = register_module("hidden", Linear(4 * 6 * 6, 32));
  Linear output = register_module("output", Linear(32, kClasses));

  at::Tensor forward(const at::Tensor& x, bool) override {
    const auto maps = at::relu(norm(conv(x.view({-1, 1, 8, 8})))).flatten(1);
    return output(at::relu(hidden(maps)));
  }
};
using Convolutional = ConvolutionalWith<nn::BatchNorm2d>;
using SyncCnn = ConvolutionalWith<taas::SyncBatchNorm>;

struct Branched : Model {
  Linear hidden = register_module("hidden", Linear(kInputs, 32));
  Linear output = register_module("output", Linear(32, kClasses));
  Linear extra = register_module("extra", Linear(32, kClasses));

  at::Tensor forward(const at::Tensor& x, bool more) override {
    const auto h = at::relu(hidden(x));
    const auto scores = output(h);
    return more ? scores + extra(h) : scores;
  }
};

/// Sparse gradients, of an embedding and of the means of an embedding.
struct Sparse : Model {
  nn::Embedding words = register_module("words", nn::Embedding(nn::EmbeddingOptions(50, 16).sparse(true)));
  nn::EmbeddingBag bags = register_module("bags", nn::EmbeddingBag(nn::EmbeddingBagOptions(50, 16).sparse(true)));
  Linear output = register_module("output", Linear(16, kClasses));

  at::Tensor forward(const at::Tensor& x, bool) override {
    const auto chosen = (x.abs() * 7).to(at::kLong).remainder(50);
    const auto mean = words(chosen).mean(1);
    return output(mean + bags(chosen));
  }
};

/// A layer that is used twice and has two names, and one of 16 bit numbers.
struct Tied : Model {
  Linear mix = register_module("mix", Linear(kInputs, kInputs));
  Linear again = register_module("again", mix);
  Linear narrow = register_module("narrow", Linear(kInputs, 16));
  Linear output = register_module("output", Linear(16, kClasses));
  Tied() { narrow->to(at::kBFloat16); }

  at::Tensor forward(const at::Tensor& x, bool) override {
    const auto there = at::tanh(mix(x));
    const auto mixed = at::tanh(again(there));
    return output(at::relu(narrow(mixed.to(at::kBFloat16)).to(at::kFloat)));
  }
};

struct Recurrent : Model {
  nn::LSTM lstm = register_module("lstm", nn::LSTM(nn::LSTMOptions(8, 16).batch_first(true)));
  Linear output = register_module("output", Linear(16, kClasses));

  at::Tensor forward(const at::Tensor& x, bool) override {
    return output(std::get<0>(lstm(x.view({-1, 8, 8}))).select(1, -1));
  }
};

/// Makes 64 numbers of 16, and scores by how much 64 numbers look like those of the data.
struct Gan : nn::Module {
  static constexpr int kNoise = 16;
  nn::Sequential generator = register_module("generator", nn::Sequential(Linear(kNoise, 32), nn::BatchNorm1d(32),
                                                                         nn::ReLU(), Linear(32, kInputs), nn::Tanh()));
  nn::Sequential discriminator = register_module(
      "discriminator",
      nn::Sequential(Linear(kInputs, 32), nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2)), Linear(32, 1)));
};

inline std::shared_ptr<Model> make_model(const std::string& name) {
  if (name == "mlp") return std::make_shared<Mlp>();
  if (name == "convolutional") return std::make_shared<Convolutional>();
  if (name == "sync_cnn") return std::make_shared<SyncCnn>();
  if (name == "branched") return std::make_shared<Branched>();
  if (name == "sparse") return std::make_shared<Sparse>();
  if (name == "tied") return std::make_shared<Tied>();
  if (name == "recurrent") return std::make_shared<Recurrent>();
  throw std::invalid_argument("no model " + name);
}

}  // namespace parity
