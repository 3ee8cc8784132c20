#include "models.hpp"

#include <torch/nn/modules/linear.h>

#include "input_error.hpp"
#include "network.hpp"
#include "resnet50.hpp"

namespace taas::train {
namespace {

/// (N, 10) in, (N, 5) out.
class ToyImpl : public TensorModule {
 public:
  torch::Tensor forward(torch::Tensor x) override { return net2(net1(x).relu()); }

 private:
  torch::nn::Linear net1 = register_module("net1", torch::nn::Linear(10, 10));
  torch::nn::Linear net2 = register_module("net2", torch::nn::Linear(10, 5));
};

/// (N, 4) in, (N, 2) out: whether processes start and find each other.
class DummyImpl : public TensorModule {
 public:
  torch::Tensor forward(torch::Tensor x) override { return linear(x); }

 private:
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(4, 2));
};

}  // namespace

std::shared_ptr<TensorModule> make_model(const std::string& name) {
  if (name == "mnist") return std::make_shared<NetworkImpl>();
  if (name == "resnet50") return std::make_shared<ResNet50Impl>();
  if (name == "toy") return std::make_shared<ToyImpl>();
  if (name == "dummy") return std::make_shared<DummyImpl>();
  throw InputError("there is no model " + name);
}

}  // namespace taas::train
