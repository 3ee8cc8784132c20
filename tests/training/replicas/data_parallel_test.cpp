#include "taas/data_parallel.hpp"

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "catch.hpp"
#include "taas/error.hpp"

namespace data_parallel_test {

using taas::DataParallel;
using Devices = std::vector<c10::Device>;

namespace {

const c10::Device kCpu{c10::kCPU};
const Devices kFourCpus(4, kCpu);

/// What forward saw in all replicas of one network.
struct Seen {
  std::mutex mutex;
  std::multiset<std::int64_t> sizes;
  std::set<std::thread::id> threads;
};

/// A linear layer and one that only `both` uses.
struct NetImpl : torch::nn::Cloneable<NetImpl> {
  explicit NetImpl(std::shared_ptr<Seen> seen_by = std::make_shared<Seen>()) : seen(std::move(seen_by)) { reset(); }
  void reset() override {
    linear = register_module("linear", torch::nn::Linear(3, 2));
    spare = register_module("spare", torch::nn::Linear(3, 2));
  }
  at::Tensor forward(const at::Tensor& x, bool both = false) {
    {
      const std::lock_guard lock(seen->mutex);
      seen->sizes.insert(x.size(0));
      seen->threads.insert(std::this_thread::get_id());
    }
    if (x.size(0) == 1 && x.sum().item<float>() < 0) throw std::runtime_error("a negative example\nand more");
    return both ? linear(x) + spare(x) : linear(x);
  }
  std::shared_ptr<Seen> seen;
  torch::nn::Linear linear = nullptr, spare = nullptr;
};
TORCH_MODULE(Net);

/// Sums of small whole numbers are exact in any order: gradients have to be equal to the bit.
void make_whole(torch::nn::Module& module) {
  at::NoGradGuard no_grad;
  for (auto& parameter : module.parameters()) parameter.copy_(at::arange(parameter.numel()).view_as(parameter) - 2);
}

at::Tensor whole_input(std::int64_t size, std::int64_t width = 3) {
  return (at::arange(size * width, at::kFloat) % 7).view({size, width});
}

std::map<std::string, at::Tensor> gradients(const torch::nn::Module& module) {
  std::map<std::string, at::Tensor> result;
  for (const auto& item : module.named_parameters()) {
    if (item.value().grad().defined()) result[item.key()] = item.value().grad().clone();
  }
  return result;
}

bool equal(const std::map<std::string, at::Tensor>& one, const std::map<std::string, at::Tensor>& other) {
  if (one.size() != other.size()) return false;
  for (const auto& [name, tensor] : one) {
    if (!other.contains(name) || !at::equal(tensor, other.at(name))) return false;
  }
  return true;
}

template <class Model>
std::map<std::string, at::Tensor> gradients_of(Model& model, torch::nn::Module& module, std::int64_t size, bool both) {
  module.zero_grad();
  model(whole_input(size), both).square().sum().backward();
  return gradients(module);
}

template <class E, class Call>
std::string text_of(Call&& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("A batch is cut as torch.chunk does, one part for each thread") {
  Net net;
  DataParallel model(net, kFourCpus);
  CHECK(model(at::ones({30, 3})).sizes() == at::IntArrayRef{30, 2});
  CHECK(net->seen->sizes == std::multiset<std::int64_t>{8, 8, 8, 6});
  CHECK(net->seen->threads.size() == 4);
  net->seen->sizes.clear();
  model(at::ones({10, 3}));
  CHECK(net->seen->sizes == std::multiset<std::int64_t>{3, 3, 3, 1});
  CHECK(net->seen->threads.size() == 4);  // the same ones
  net->seen->sizes.clear();
  model(at::ones({2, 3}));
  CHECK(net->seen->sizes == std::multiset<std::int64_t>{1, 1});
}

TEST_CASE("Outputs and gradients are those of the module alone, to the bit") {
  for (const bool both : {true, false}) {
    Net alone, net;
    make_whole(*alone);
    make_whole(*net);
    DataParallel model(net, kFourCpus);
    for (const std::int64_t size : {30, 10, 2}) {
      INFO("batch of " << size << ", both layers " << both);
      CHECK(at::equal(model(whole_input(size), both), alone->forward(whole_input(size), both)));
      const auto wanted = gradients_of(alone, *alone, size, both);
      CHECK(wanted.size() == (both ? 4 : 2));
      CHECK(equal(gradients_of(model, *net, size, both), wanted));
    }
  }
}

TEST_CASE("Gradients of several backwards are added up") {
  Net alone, net;
  make_whole(*alone);
  make_whole(*net);
  DataParallel model(net, kFourCpus);
  auto first = model(whole_input(10), true).sum(), second = model(whole_input(8), true).square().sum();
  first.backward();
  second.backward();
  (alone->forward(whole_input(10), true).sum() + alone->forward(whole_input(8), true).square().sum()).backward();
  CHECK(equal(gradients(*net), gradients(*alone)));
}

TEST_CASE("Training goes the way of the module alone") {
  torch::manual_seed(3);
  Net alone, net;
  {
    at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < 4; ++i) net->parameters()[i].copy_(alone->parameters()[i]);
  }
  DataParallel model(net, kFourCpus);
  torch::optim::SGD with(net->parameters(), 0.01), without(alone->parameters(), 0.01);
  for (int step = 0; step < 5; ++step) {
    const auto batch = at::randn({9, 3});
    net->zero_grad();
    alone->zero_grad();
    model(batch, true).square().mean().backward();
    alone->forward(batch, true).square().mean().backward();
    with.step();
    without.step();
  }
  // Sums are taken in another order: only their rounding differs.
  for (std::size_t i = 0; i < 4; ++i) CHECK(at::allclose(net->parameters()[i], alone->parameters()[i]));
}

TEST_CASE("Weights are taken over however they have changed") {
  Net net;
  DataParallel model(net, kFourCpus);
  const auto x = whole_input(8);
  model(x);
  const auto is_fresh = [&] { return at::allclose(model(x), net->forward(x)); };
  {
    at::NoGradGuard no_grad;
    net->linear->weight.add_(1);
  }
  CHECK(is_fresh());
  net->linear->weight.set_data(at::full({2, 3}, 5.0f));  // as torch::load does
  CHECK(is_fresh());
  net->linear->weight.data().add_(1);  // as libtorch's optimizers do: no version tells
  CHECK(is_fresh());
}

TEST_CASE("Buffers are those of the first device, and modes are taken over") {
  torch::nn::BatchNorm1d norm(3), alone(3);
  DataParallel model(norm, Devices(2, kCpu));
  const auto x = whole_input(8);
  for (int step = 0; step < 2; ++step) {
    auto first = model(x), second = model(x);  // the second must not spoil the first one's backward
    (first + second).sum().backward();
    alone(x.slice(0, 0, 4));
    alone(x.slice(0, 0, 4));
  }
  CHECK(at::equal(norm->running_mean, alone->running_mean));
  CHECK(norm->num_batches_tracked.item<int>() == 4);
  norm->eval();
  alone->eval();
  CHECK(at::equal(model(x), alone(x)));
  norm->train();
  model(x);
  CHECK(norm->num_batches_tracked.item<int>() == 5);
}

TEST_CASE("A frozen parameter stays without a gradient, and nothing is recorded without gradient mode") {
  Net net;
  DataParallel model(net, kFourCpus);
  model(whole_input(8), true);
  net->spare->weight.set_requires_grad(false);
  model(whole_input(8), true).sum().backward();
  CHECK_FALSE(net->spare->weight.grad().defined());
  CHECK(net->spare->bias.grad().defined());
  at::NoGradGuard no_grad;
  CHECK_FALSE(model(whole_input(8)).requires_grad());
}

TEST_CASE("What a replica throws comes out with its device, and the next batch goes on") {
  Net net;
  DataParallel model(net, kFourCpus);
  auto x = at::ones({4, 3});
  x[2].fill_(-1);
  CHECK(text_of<taas::Exception>([&] { model(x); }) == "replica 2 on cpu: a negative example and more");
  CHECK(model(at::ones({4, 3})).size(0) == 4);
}

namespace {

/// Takes and returns more than a tensor.
struct PairedImpl : torch::nn::Module {
  PairedImpl() { weight = register_parameter("weight", at::ones({1})); }
  std::pair<at::Tensor, std::vector<at::Tensor>> forward(const std::map<std::string, at::Tensor>& inputs, int factor) {
    const auto y = inputs.at("x") * weight * factor;
    return {y.sum(), {y, inputs.at("y")}};
  }
  at::Tensor weight;
};
TORCH_MODULE(Paired);

struct Opaque {};
struct ReturnsOpaqueImpl : torch::nn::Cloneable<ReturnsOpaqueImpl> {
  void reset() override {}
  Opaque forward(const at::Tensor&) { return {}; }
};

}  // namespace

TEST_CASE("Tensors are found in inputs and outputs, and a module that cannot be cloned is made") {
  Paired module;
  DataParallel model(module, Devices(3, kCpu), [] { return std::make_shared<PairedImpl>(); });
  std::map<std::string, at::Tensor> inputs{{"x", whole_input(6)}, {"y", at::arange(6)}};
  auto [sums, rest] = model(inputs, 2);
  CHECK(at::equal(sums, 2 * whole_input(6).view({3, -1}).sum(1)));  // a scalar of each replica
  CHECK(at::equal(rest[0], 2 * whole_input(6)));
  CHECK(at::equal(rest[1], at::arange(6)));
  CHECK(inputs["x"].size(0) == 6);
  inputs["y"] = at::arange(2);
  CHECK(text_of<taas::InvalidArgument>([&] { model(inputs, 2); }) ==
        "DataParallel: inputs are cut into 3 and into 2 parts: give all of them the same first dimension");
  inputs["y"] = at::scalar_tensor(1);
  CHECK_THAT(text_of<taas::InvalidArgument>([&] { model(inputs, 2); }), ContainsSubstring("scalar tensor"));
}

TEST_CASE("What cannot be done is said") {
  CHECK_THAT(text_of<taas::InvalidArgument>([] { DataParallel model(Paired{}, Devices(2, kCpu)); }),
             ContainsSubstring("PairedImpl cannot be copied: derive it from torch::nn::Cloneable"));
  CHECK_THAT(text_of<taas::InvalidArgument>([] { DataParallel model(Net{}, Devices{}); }), ContainsSubstring("empty"));
  CHECK_THAT(text_of<taas::InvalidArgument>([] {
               DataParallel model(Net{}, Devices{{c10::kCUDA, 99}});
             }),
             ContainsSubstring("there is no cuda:99"));
  CHECK(text_of<taas::InvalidArgument>([] {
          DataParallel model(Net{}, Devices{c10::kMeta, kCpu});
        }) == "DataParallel: parameter linear.weight is on cpu: move the module to meta, the first device");
  const auto other = [] { return std::make_shared<torch::nn::LinearImpl>(3, 1); };
  CHECK_THAT(text_of<taas::InvalidArgument>([&] { DataParallel wrong(torch::nn::Linear(3, 2), kFourCpus, other); }),
             ContainsSubstring("other parameters"));
  DataParallel opaque(std::make_shared<ReturnsOpaqueImpl>(), kFourCpus);
  CHECK_THAT(text_of<taas::InvalidArgument>([&] { opaque(whole_input(8)); }), ContainsSubstring("Opaque"));
}

TEST_CASE("Replicas on devices of two kinds give the same gradients") {
  const auto devices = taas::visible_devices();
  if (devices.front().is_cpu()) SKIP_GPU_TEST("needs a GPU beside the CPU");
  Net alone, net;
  make_whole(*alone);
  make_whole(*net);
  net->to(devices.front());
  DataParallel model(net, Devices{devices.front(), kCpu});
  model(whole_input(10).to(devices.front()), true).square().sum().backward();
  alone->forward(whole_input(10), true).square().sum().backward();
  for (const auto& item : alone->named_parameters()) {
    CHECK(at::equal(net->named_parameters()[item.key()].grad().cpu(), item.value().grad()));
  }
}

}  // namespace data_parallel_test
