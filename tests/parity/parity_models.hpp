// The models of hook_parity.py and option_parity.py: each takes (batch, 64) numbers and gives (batch, 10) scores.
// Modules are called in the order of the Python half, one in each expression: backward adds gradients in the order of
// forward, and C++ may evaluate arguments from the right.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/modules/rnn.h>
#include <torch/nn/modules/transformercoder.h>
#include <torch/nn/modules/transformerlayer.h>

#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>

namespace parity {

namespace nn = torch::nn;

constexpr int kInputs = 64;
constexpr int kClasses = 10;

struct Model : nn::Module {
  /// `more`: with the branch that is used now and then, where there is one.
  virtual at::Tensor forward(const at::Tensor& x, bool more) = 0;
};

/// As Python's module: libtorch's rounds 16 bit products before it adds the bias, where inputs have three dimensions.
inline at::Tensor through(const nn::Linear& layer, const at::Tensor& x) {
  return at::linear(x, layer->weight, layer->bias);
}

struct Convolutional : Model {
  nn::Conv2d conv = register_module("conv", nn::Conv2d(1, 4, 3));
  nn::BatchNorm2d norm = register_module("norm", nn::BatchNorm2d(4));
  nn::Linear hidden = register_module("hidden", nn::Linear(4 * 6 * 6, 32));
  nn::Linear output = register_module("output", nn::Linear(32, kClasses));

  at::Tensor forward(const at::Tensor& x, bool) override {
    const auto maps = at::relu(norm(conv(x.view({-1, 1, 8, 8})))).flatten(1);
    return output(at::relu(hidden(maps)));
  }
};

struct Branched : Model {
  nn::Linear hidden = register_module("hidden", nn::Linear(kInputs, 32));
  nn::Linear output = register_module("output", nn::Linear(32, kClasses));
  nn::Linear extra = register_module("extra", nn::Linear(32, kClasses));

  at::Tensor forward(const at::Tensor& x, bool more) override {
    const auto h = at::relu(hidden(x));
    const auto scores = output(h);
    return more ? scores + extra(h) : scores;
  }
};

struct Sparse : Model {
  nn::Embedding words = register_module("words", nn::Embedding(nn::EmbeddingOptions(50, 16).sparse(true)));
  nn::Linear output = register_module("output", nn::Linear(16, kClasses));

  at::Tensor forward(const at::Tensor& x, bool) override {
    return output(words((x.abs() * 7).to(at::kLong).remainder(50)).mean(1));
  }
};

/// One weight used twice, and a layer of 16 bit numbers.
struct Tied : Model {
  nn::Linear mix = register_module("mix", nn::Linear(kInputs, kInputs));
  nn::Linear narrow = register_module("narrow", nn::Linear(kInputs, 16));
  nn::Linear output = register_module("output", nn::Linear(16, kClasses));
  Tied() { narrow->to(at::kBFloat16); }

  at::Tensor forward(const at::Tensor& x, bool) override {
    const auto there = at::tanh(mix(x));
    const auto mixed = at::tanh(at::linear(there, mix->weight.t()));
    return output(at::relu(narrow(mixed.to(at::kBFloat16)).to(at::kFloat)));
  }
};

struct Recurrent : Model {
  nn::LSTM lstm = register_module("lstm", nn::LSTM(nn::LSTMOptions(8, 16).batch_first(true)));
  nn::Linear output = register_module("output", nn::Linear(16, kClasses));

  at::Tensor forward(const at::Tensor& x, bool) override {
    return output(std::get<0>(lstm(x.view({-1, 8, 8}))).select(1, -1));
  }
};

struct Transformer : Model {
  static constexpr int kWidth = 16;
  nn::Linear inner = register_module("inner", nn::Linear(8, kWidth));
  nn::Linear query = register_module("query", nn::Linear(kWidth, kWidth));
  nn::Linear key = register_module("key", nn::Linear(nn::LinearOptions(kWidth, kWidth).bias(false)));
  nn::Linear value = register_module("value", nn::Linear(kWidth, kWidth));
  nn::LayerNorm norm = register_module("norm", nn::LayerNorm(nn::LayerNormOptions({kWidth})));
  nn::Linear wide = register_module("wide", nn::Linear(kWidth, 4 * kWidth));
  nn::Linear narrow = register_module("narrow", nn::Linear(4 * kWidth, kWidth));
  nn::Linear output = register_module("output", nn::Linear(kWidth, kClasses));

  at::Tensor forward(const at::Tensor& x, bool) override {
    const auto h = through(inner, x.view({-1, 8, 8}));
    const auto q = through(query, h), k = through(key, h), v = through(value, h);
    const auto weights = at::softmax(at::matmul(q, k.transpose(1, 2)) / 4.0, -1);
    const auto attended = norm(h + at::matmul(weights, v));
    return output((attended + through(narrow, at::gelu(through(wide, attended)))).mean(1));
  }
};

/// Rows of 16 numbers by the words of a batch, and where the four bags of each row begin.
template <bool kSparse>
struct BagsOf : Model {
  nn::EmbeddingBag words = register_module("words", nn::EmbeddingBag(nn::EmbeddingBagOptions(50, 16).sparse(kSparse)));
  nn::Linear output = register_module("output", nn::Linear(4 * 16, kClasses));

  at::Tensor forward(const at::Tensor& x, bool) override {
    const auto chosen = (x.abs() * 7).to(at::kLong).remainder(50).flatten();
    const auto starts = at::arange(0, chosen.numel(), 16, at::kLong);
    return output(words(chosen, starts).view({-1, 4 * 16}));
  }
};
using Bags = BagsOf<false>;
using SparseBags = BagsOf<true>;

/// libtorch's own layers. Their attention computes weights first, as Python's does where weights are asked for.
struct Encoder : Model {
  static constexpr int kWidth = 16;
  nn::Linear inner = register_module("inner", nn::Linear(8, kWidth));
  nn::TransformerEncoder layers =
      register_module("layers", nn::TransformerEncoder(nn::TransformerEncoderOptions(
                                    nn::TransformerEncoderLayerOptions(kWidth, 2).dim_feedforward(32).dropout(0), 2)));
  nn::Linear output = register_module("output", nn::Linear(kWidth, kClasses));

  at::Tensor forward(const at::Tensor& x, bool) override {
    return output(layers(inner(x.view({-1, 8, 8})).transpose(0, 1)).mean(0));
  }
};

/// A layer of 64 bit numbers under two names, and one of 32.
struct Doubled : Model {
  nn::Linear mix = register_module("mix", nn::Linear(kInputs, kInputs));
  nn::Linear again = register_module("again", mix);
  nn::Linear output = register_module("output", nn::Linear(kInputs, kClasses));
  Doubled() { mix->to(at::kDouble); }

  at::Tensor forward(const at::Tensor& x, bool) override {
    const auto there = at::tanh(mix(x.to(at::kDouble)));
    return output(at::tanh(again(there)).to(at::kFloat));
  }
};

inline std::shared_ptr<Model> make_model(const std::string& name) {
  if (name == "convolutional") return std::make_shared<Convolutional>();
  if (name == "branched") return std::make_shared<Branched>();
  if (name == "sparse") return std::make_shared<Sparse>();
  if (name == "tied") return std::make_shared<Tied>();
  if (name == "recurrent") return std::make_shared<Recurrent>();
  if (name == "transformer") return std::make_shared<Transformer>();
  if (name == "bags") return std::make_shared<Bags>();
  if (name == "sparsebags") return std::make_shared<SparseBags>();
  if (name == "encoder") return std::make_shared<Encoder>();
  if (name == "doubled") return std::make_shared<Doubled>();
  throw std::invalid_argument("no model " + name);
}

}  // namespace parity
