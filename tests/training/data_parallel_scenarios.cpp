#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <tuple>

#include "rank_scenarios.hpp"
#include "taas/collectives.hpp"
#include "taas/distributed_data_parallel.hpp"
#include "taas/error.hpp"
#include "taas/graphed_step.hpp"
#include "taas/optimizers.hpp"

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

at::Tensor input_of(int rank) { return at::arange(3, at::kFloat) + static_cast<float>(rank + 1); }

at::Tensor mean_input(int ranks) {
  auto sum = at::zeros({3});
  for (int rank = 0; rank < ranks; ++rank) sum += input_of(rank);
  return sum / ranks;
}

void expect_close(const at::Tensor& got, const at::Tensor& wanted, const std::string& what) {
  expect(got.defined() && at::allclose(got, wanted), what);
}

Options every_option(int number) {
  Options options;
  if (number == 1) options.find_unused_parameters = true;
  if (number == 2) options.static_graph = true;
  if (number == 3) options.gradient_as_bucket_view = true;
  if (number == 4) options.bucket_cap_mb = 0.000001;
  return options;
}

void average() {
  auto group = init();
  for (int number = 0; number < 5; ++number) {
    DistributedDataParallel model(Two(), group, every_option(number));
    const auto mean = mean_input(group.world_size());
    for (int step = 0; step < 3; ++step) {
      model.zero_grad();
      model(input_of(group.rank()), true).backward();
      expect_close(model.module().a.grad(), mean, "gradient of a, option " + std::to_string(number));
      expect_close(model.module().b.grad(), mean, "gradient of b, option " + std::to_string(number));
    }
  }
}

constexpr int kGraphedSteps = 16;

/// Some steps of data-parallel training, with or without GraphedStep; returns the parameters.
at::Tensor trained_parameters(const ProcessGroup& group, bool graphed) {
  OwnStream stream(group.device());
  torch::manual_seed(group.rank() + 1);
  torch::nn::Linear linear(3, 2);
  linear->to(group.device());
  DistributedDataParallel model(linear, group, {.gradient_as_bucket_view = true});
  const bool possible = GraphedStep::is_possible(group);
  Adam optimizer(linear->parameters(), torch::optim::AdamOptions(0.05), {.capturable = possible});
  auto learn = [&](const std::vector<at::Tensor>& inputs) {
    model.zero_grad();
    auto loss = model(inputs[0]).square().mean();
    loss.backward();
    optimizer.step();
    return loss;
  };
  GraphedStep step(group, learn, {&optimizer}, {.enabled = graphed});
  for (int number = 0; number < kGraphedSteps; ++number) {
    if (number == 13) optimizer.param_groups()[0].options().set_lr(0.02);
    step({at::linspace(-1, number + group.rank(), 12).view({4, 3}).to(group.device())});
  }
  expect(step.replayed() == (graphed && possible), "the last step was replayed where that is possible");
  return at::cat({linear->weight.flatten(), linear->bias}).detach().cpu();
}

void graphed_step() {
  auto group = init();
  expect(!GraphedStep::is_possible(group), "gloo works on the CPU");
  expect(at::equal(trained_parameters(group, true), trained_parameters(group, false)), "parameters with GraphedStep");
}

/// Needs a GPU for each rank.
void nccl_graph() {
  auto group = init({.backend = Backend::kNccl});
  expect(GraphedStep::is_possible(group), "nccl works on a GPU");
  expect_close(trained_parameters(group, true), trained_parameters(group, false), "parameters with GraphedStep");
}

/// Rank 0's values win at construction, in buffers as well.
void initial_values() {
  auto group = init();
  torch::nn::BatchNorm1d norm(2);
  norm->running_mean.fill_(group.rank() + 1);
  at::NoGradGuard no_grad;
  norm->weight.fill_(group.rank() + 5);
  DistributedDataParallel model(norm, group);
  expect_close(norm->weight, at::full({2}, 5.0f), "weight of rank 0");
  expect_close(norm->running_mean, at::full({2}, 1.0f), "buffer of rank 0");
}

void no_sync() {
  auto group = init();
  DistributedDataParallel model(Two(), group);
  const auto mine = input_of(group.rank());
  const auto mean = mean_input(group.world_size());
  for (int round = 0; round < 2; ++round) {
    model.zero_grad();
    {
      auto scope = model.no_sync();
      model(mine, true).backward();
      expect_close(model.module().a.grad(), mine, "own gradient inside no_sync");
    }
    model(mine, true).backward();
    expect_close(model.module().a.grad(), 2 * mean, "sum over both after no_sync");
  }
}

void unused_parameter() {
  auto group = init();
  DistributedDataParallel strict(Two(), group);
  strict(input_of(group.rank()), false).backward();
  const auto text = text_of<Exception>([&] { strict(input_of(group.rank()), false); });
  expect(text == "parameters that got no gradient in the last backward on rank " + std::to_string(group.rank()) +
                     ": b: use them in the loss, or set find_unused_parameters",
         text);

  DistributedDataParallel lenient(Two(), group, {.find_unused_parameters = true});
  for (int step = 0; step < 3; ++step) {
    lenient.zero_grad();
    lenient(input_of(group.rank()), group.rank() == 0).backward();  // b: only rank 0 uses it
    expect_close(lenient.module().a.grad(), mean_input(group.world_size()), "gradient of a");
    expect_close(lenient.module().b.grad(), input_of(0) / group.world_size(), "gradient of b from rank 0 alone");
  }
}

void mismatch() {
  auto group = init();
  const auto refused = [&](auto module) {
    return text_of<InvalidArgument>([&] { DistributedDataParallel model(module, group); });
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
  text = text_of<InvalidArgument>([&] { DistributedDataParallel model(Two(), group, {.bucket_cap_mb = 0}); });
  expect(contains(text, "bucket_cap_mb must be above 0"), text);
}

struct Named {
  at::Tensor value;
  template <class Visit>
  void visit_tensors(Visit&& visit) {
    visit(value);
  }
};
struct Opaque {
  at::Tensor value;
};

template <class Output>
struct ReturnsImpl : torch::nn::Module {
  ReturnsImpl() { linear = register_module("linear", torch::nn::Linear(2, 2)); }
  Output forward(const at::Tensor& x);
  torch::nn::Linear linear = nullptr;
};
using Nested = std::tuple<std::map<std::string, std::vector<at::Tensor>>, int, std::optional<at::Tensor>>;
template <>
Nested ReturnsImpl<Nested>::forward(const at::Tensor& x) {
  return {{{"out", {linear(x)}}}, 7, std::nullopt};
}
template <>
Named ReturnsImpl<Named>::forward(const at::Tensor& x) {
  return {linear(x)};
}
template <>
Opaque ReturnsImpl<Opaque>::forward(const at::Tensor& x) {
  return {linear(x)};
}

/// Tensors are found in what forward returns, whatever it is made of; where they cannot be, that is said.
void outputs() {
  auto group = init();
  const auto x = at::ones({1, 2});
  const Options find{.find_unused_parameters = true};
  DistributedDataParallel nested(std::make_shared<ReturnsImpl<Nested>>(), group, find);
  std::get<0>(nested(x))["out"][0].sum().backward();
  expect_close(nested.module().linear->bias.grad(), at::ones({2}), "tensor inside a tuple, map and vector");
  DistributedDataParallel named(std::make_shared<ReturnsImpl<Named>>(), group, find);
  named(x).value.sum().backward();
  expect_close(named.module().linear->bias.grad(), at::ones({2}), "tensor of a struct");
  DistributedDataParallel opaque(std::make_shared<ReturnsImpl<Opaque>>(), group, find);
  const auto text = text_of<InvalidArgument>([&] { opaque(x); });
  expect(contains(text, "Opaque") && contains(text, "visit_tensors"), text);
  DistributedDataParallel plain(std::make_shared<ReturnsImpl<Opaque>>(), group);
  plain(x).value.sum().backward();
  expect_close(plain.module().linear->bias.grad(), at::ones({2}), "no search, no demand");
}

/// In a group of one process the wrapper changes nothing and refuses nothing but nonsense.
void alone() {
  auto group = init();
  DistributedDataParallel model(Two(), group, {.find_unused_parameters = true, .gradient_as_bucket_view = true});
  for (int step = 0; step < 2; ++step) {
    model.zero_grad();
    auto scope = model.no_sync();
    model(input_of(0), false).backward();
    expect_close(model.module().a.grad(), input_of(0), "gradient");
    expect(!model.module().b.grad().defined(), "no gradient");
  }
}

/// A GPU for each rank: everything happens there, and CPU tensors can be communicated too.
void nccl() {
  auto group = init({.backend = Backend::kNccl});
  expect(group.device().is_cuda(), "device");
  expect(group.backend() == "nccl", "backend");
  for (const auto device : {group.device(), c10::Device(c10::kCPU)}) {
    auto tensor = at::ones({1000}, device);
    all_reduce(group, tensor);
    expect_close(tensor.cpu(), at::full({1000}, static_cast<float>(group.world_size())), "all_reduce");
  }
  Two module;
  module->to(group.device());
  DistributedDataParallel model(module, group);
  for (int step = 0; step < 3; ++step) {
    model.zero_grad();
    model(input_of(group.rank()).to(group.device()), true).backward();
    expect_close(model.module().a.grad().cpu(), mean_input(group.world_size()), "gradient");
  }
  barrier(group);
}

}  // namespace

std::map<std::string, Scenario> data_parallel_scenarios() {
  return {{"average", average},
          {"initial_values", initial_values},
          {"graphed_step", graphed_step},
          {"no_sync", no_sync},
          {"unused_parameter", unused_parameter},
          {"mismatch", mismatch},
          {"outputs", outputs},
          {"alone", alone},
          {"nccl", nccl},
          {"nccl_graph", nccl_graph}};
}

}  // namespace taas::test
