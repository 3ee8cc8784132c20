#include <torch/nn/modules/linear.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "rank_scenarios.hpp"
#include "taas/collectives.hpp"
#include "taas/comm_hooks.hpp"
#include "taas/distributed_data_parallel.hpp"
#include "taas/error.hpp"

namespace taas::test {
namespace {

using Options = DistributedDataParallelOptions;

/// y = a·x + b·x, with `b` used only when asked for.
struct TwoImpl : torch::nn::Module {
  explicit TwoImpl(std::int64_t width = 3) {
    a = register_parameter("a", at::ones({width}));
    b = register_parameter("b", at::ones({width}));
  }
  at::Tensor forward(const at::Tensor& x, bool both) {
    auto y = (a * x).sum();
    return both ? y + (b * x).sum() : y;
  }
  at::Tensor a, b;
};
TORCH_MODULE(Two);

at::Tensor some_input() { return at::arange(3, at::kFloat) + 1; }

void expect_close(const at::Tensor& got, const at::Tensor& wanted, const std::string& what) {
  expect(got.defined() && at::allclose(got, wanted), what);
}

/// With advice that fits the options.
void unused_parameter() {
  auto group = init();
  const auto text_with = [&](const Options& options) {
    DistributedDataParallel model(Two(), group, options);
    if (options.static_graph) model.backward(model(some_input(), true));
    return text_of<Exception>([&] {
      for (int step = 0; step < 2; ++step) model.backward(model(some_input(), false));
    });
  };
  const auto begin =
      "parameters that got no gradient in the last backward on rank " + std::to_string(group.rank()) + ": b: ";
  auto text = text_with({});
  expect(text == begin + "use them in the loss, or set find_unused_parameters", text);
  text = text_with({.static_graph = true});
  expect(text == begin +
                     "they had one in the first iteration, and static_graph is for the same parameters in each; "
                     "use them in the loss, or leave static_graph out",
         text);
}

/// A tensor that forward does not return hides a parameter that is used: libtorch's error in backward is ours.
void hidden_output() {
  auto group = init();
  Two module;
  DistributedDataParallel model(module, group, {.find_unused_parameters = true});
  const auto text = text_of<Exception>([&] {
    const auto returned = model(some_input(), false);
    model.backward(returned + (module->b * some_input()).sum());
  });
  expect(contains(text, "parameter b got its gradient twice in one backward") && contains(text, "return from forward"),
         text);
}

/// Of modules and options that no wrapper can be made of, those that differ between ranks on every rank.
void mismatch() {
  auto group = init();
  const auto refused = [&](auto module, const Options& options = {}) {
    return text_of<InvalidArgument>([&] { DistributedDataParallel model(module, group, options); });
  };
  const int last = group.world_size() - 1;
  auto text = refused(Two(group.rank() == last ? 4 : 3));
  expect(
      text ==
          "parameters differ between ranks: a (3) Float, strides (1) on rank 0, but a (4) Float, strides (1) on rank " +
              std::to_string(last),
      text);
  text = refused(torch::nn::Linear(torch::nn::LinearOptions(2, 2).bias(group.rank() != last)));
  expect(text == "parameters differ between ranks: 2 on rank 0, but 1 on rank " + std::to_string(last) +
                     "; the first of one side alone is bias (2) Float, strides (1)",
         text);
  Two frozen;
  for (auto& parameter : frozen->parameters()) parameter.requires_grad_(false);
  text = refused(frozen);
  expect(contains(text, "no parameter that needs a gradient"), text);
  text = refused(std::shared_ptr<TwoImpl>());
  expect(contains(text, "module to be wrapped is null"), text);
  text = refused(Two(), {.bucket_cap_mb = 0});
  expect(contains(text, "bucket_cap_mb must be above 0"), text);
  text = refused(Two(), {.bucket_cap_mb_list = {1, 0}});
  expect(contains(text, "bucket_cap_mb_list must be above 0"), text);
}

struct Named {
  at::Tensor value;
  template <class Visit>
  void visit_tensors(Visit&& visit) {
    visit(value);
  }
};
using Nested = std::tuple<std::map<std::string, std::vector<Named>>, int, std::optional<at::Tensor>>;
struct Opaque {
  at::Tensor value;
};

template <class Output>
struct ReturnsImpl : torch::nn::Module {
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(2, 2));
  Output forward(const at::Tensor& x) {
    if constexpr (std::is_same_v<Output, Nested>) {
      return {{{"out", {Named{linear(x)}}}}, 7, std::nullopt};
    } else {
      return {linear(x)};
    }
  }
};

/// Tensors are found in what forward returns, whatever it is made of; where they cannot be, that is said.
void outputs() {
  auto group = init();
  const auto x = at::ones({1, 2});
  const Options find{.find_unused_parameters = true};
  DistributedDataParallel nested(std::make_shared<ReturnsImpl<Nested>>(), group, find);
  std::get<0>(nested(x))["out"][0].value.sum().backward();
  expect_close(nested.module().linear->bias.grad(), at::ones({2}), "tensor of a struct inside a tuple, map and vector");
  DistributedDataParallel opaque(std::make_shared<ReturnsImpl<Opaque>>(), group, find);
  const auto text = text_of<InvalidArgument>([&] { opaque(x); });
  expect(contains(text, "Opaque") && contains(text, "visit_tensors"), text);
  DistributedDataParallel plain(std::make_shared<ReturnsImpl<Opaque>>(), group);
  plain(x).value.sum().backward();
  expect_close(plain.module().linear->bias.grad(), at::ones({2}), "no search, no demand");
}

/// In a group of one process the wrapper stands for its module: no hook runs, and no parameter has to be used.
void alone() {
  auto group = init();
  DistributedDataParallel model(Two(), group, {.find_unused_parameters = true, .gradient_as_bucket_view = true});
  model.register_comm_hook(make_comm_hook([](GradBucket& bucket) { return at::zeros_like(bucket.buffer()); }));
  const auto step = [&] {
    model.zero_grad();
    model(some_input(), false).backward();
    expect_close(model.module().a.grad(), some_input(), "gradient");
    expect(!model.module().b.grad().defined(), "no gradient");
  };
  step();
  const auto scope = model.no_sync();
  step();
  model.eval();
  expect(!model.is_training() && !model.module().is_training(), "eval");
  model.train();
  expect(model.is_training() && model.parameters().size() == 2, "train and parameters");
  expect(model.named_parameters().contains("a"), "names without a prefix");
  const torch::nn::Module& module = model;
  expect(&module == &model.module(), "the module itself");
}

/// A GPU for each rank: everything happens there, and CPU tensors can be communicated too.
void nccl() {
  auto group = init({.backend = Backend::kNccl});
  const auto ranks = static_cast<float>(group.world_size());
  expect(group.device().is_cuda(), "device");
  expect(group.backend() == "nccl", "backend");
  for (const auto device : {group.device(), c10::Device(c10::kCPU)}) {
    auto tensor = at::ones({1000}, device);
    all_reduce(group, tensor);
    expect_close(tensor.cpu(), at::full({1000}, ranks), "all_reduce");
  }
  Two module;
  module->to(group.device());
  DistributedDataParallel model(module, group);
  for (int step = 0; step < 3; ++step) {
    model.zero_grad();
    model((some_input() * (group.rank() + 1)).to(group.device()), true).backward();
    expect_close(model.module().a.grad().cpu(), some_input() * ((ranks + 1) / 2), "average gradient");
  }
  barrier(group);
}

}  // namespace

std::map<std::string, Scenario> data_parallel_scenarios() {
  return {{"unused_parameter", unused_parameter},
          {"hidden_output", hidden_output},
          {"mismatch", mismatch},
          {"outputs", outputs},
          {"alone", alone},
          {"nccl", nccl}};
}

}  // namespace taas::test
