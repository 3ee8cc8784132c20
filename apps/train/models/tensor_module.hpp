#pragma once

#include <torch/nn/module.h>

namespace taas::train {

/// A model of one input and one output: what the program can train.
class TensorModule : public torch::nn::Module {
 public:
  virtual torch::Tensor forward(torch::Tensor x) = 0;
};

}  // namespace taas::train
