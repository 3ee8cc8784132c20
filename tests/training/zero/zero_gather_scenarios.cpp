// Gathers of a sharded optimizer that last into the next forward.
#include <ATen/ATen.h>
#include <c10/util/Exception.h>
#include <torch/nn/modules/activation.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>

#include "rank_scenarios.hpp"
#include "shard_file_models.hpp"
#include "taas/checkpoint.hpp"
#include "taas/distributed_data_parallel.hpp"
#include "taas/error.hpp"
#include "taas/join.hpp"
#include "taas/zero.hpp"
#include "zero/zero_network.hpp"

namespace taas::test {
namespace {

using torch::optim::AdamWOptions;
using torch::optim::SGDOptions;
namespace nn = torch::nn;

constexpr int kGatherSteps = 6;
constexpr double kGatherBucketMiB = 0.001;  // a bucket for each tensor

ZeroOptions lasting(int stage = 2) {
  return {.stage = stage, .bucket_cap_mb = kGatherBucketMiB, .overlap_gather = true};
}

nn::Sequential layers_of_gathers() {
  at::manual_seed(4);
  nn::Sequential network(nn::Linear(5, 137), nn::ReLU(), nn::Linear(137, 91), nn::ReLU(), nn::Linear(91, 3));
  network->to(group_device);
  return network;
}

at::Tensor gather_batch(const ProcessGroup& group, int step) {
  return at::linspace(-1, 1 + step + group.rank(), 30, here()).view({6, 5});
}

struct GatherRun {
  std::vector<at::Tensor> parameters;
  c10::IValue state;
};

enum class Waits { kInStep, kBeforeForward, kByLayer };

/// Each layer is waited for as forward comes to it, or all of them before.
template <class Options>
GatherRun train_with(const ProcessGroup& group, const Options& defaults, int stage, Waits waits) {
  auto network = layers_of_gathers();
  std::optional<DistributedDataParallel<nn::SequentialImpl>> model;
  if (stage == 1) model.emplace(network, group);
  auto options = lasting(stage);
  options.overlap_gather = waits != Waits::kInStep;
  ZeroOptimizer optimizer(network->parameters(), group, defaults, options);
  const auto by_layer = [&](at::Tensor x) {
    for (auto& layer : *network) {
      optimizer.wait_for(*layer.ptr());
      x = layer.forward(x);
    }
    return x;
  };
  for (int step = 0; step < kGatherSteps; ++step) {
    const auto batch = gather_batch(group, step);
    optimizer.zero_grad();
    if (waits == Waits::kBeforeForward) optimizer.wait();
    const auto scores = model ? (*model)(batch) : waits == Waits::kByLayer ? by_layer(batch) : network->forward(batch);
    scores.square().mean().backward();
    optimizer.clip_grad_norm(0.5);
    optimizer.step();
  }
  optimizer.wait();
  GatherRun run{{}, optimizer.consolidated_state()};
  for (const auto& parameter : network->parameters()) run.parameters.push_back(parameter.detach().clone());
  return run;
}

template <class Options>
void expect_same_run(const ProcessGroup& group, const Options& defaults, int stage, Waits waits) {
  const auto plain = train_with(group, defaults, stage, Waits::kInStep);
  const auto lasted = train_with(group, defaults, stage, waits);
  const auto name = "stage " + std::to_string(stage) + ", " + std::to_string(static_cast<int>(waits));
  for (std::size_t i = 0; i < plain.parameters.size(); ++i) {
    expect(same_here()(lasted.parameters[i], plain.parameters[i]), name + ": parameter " + std::to_string(i));
  }
  if (group.rank() == 0) expect(same_values(plain.state, lasted.state, same_here()), name + ": the state");
}

void zero_lasting_gathers() {
  at::set_num_threads(1);
  const auto group = join_as_asked();
  const auto sgd = SGDOptions(0.05).momentum(0.9);
  const auto adamw = AdamWOptions(1e-2).eps(eps_here());
  for (const int stage : {1, 2}) {
    expect_same_run(group, sgd, stage, Waits::kBeforeForward);
    expect_same_run(group, adamw, stage, Waits::kBeforeForward);
  }
  expect_same_run(group, sgd, 2, Waits::kByLayer);
  expect_same_run(group, adamw, 2, Waits::kByLayer);
}

void lasting_step(const ProcessGroup& group, nn::Sequential& network, ZeroOptimizer& optimizer) {
  optimizer.wait();
  network->forward(gather_batch(group, 0)).square().mean().backward();
  optimizer.step();
  optimizer.zero_grad();
}

void expect_closed(const nn::Sequential& network, const char* when) {
  const auto refused = [&](const std::function<void()>& use) {
    const auto text = text_of<c10::Error>(use);
    expect(contains(text, "call wait() of the taas::ZeroOptimizer"), std::string(when) + ": " + text);
  };
  for (const auto& parameter : network->parameters()) {
    refused([&] { parameter.sum(); });
    refused([&] {
      const at::NoGradGuard no_grad;
      parameter.zero_();
    });
  }
  refused([&] { network->clone(); });
}

void expect_open(const nn::Sequential& network, const char* when) {
  for (const auto& parameter : network->parameters()) {
    expect(std::isfinite(parameter.sum().item<double>()), std::string("a parameter ") + when);
  }
}

/// Whatever reads a parameter without a wait is an exception, and what needs all of them waits itself.
void zero_closed_parameters() {
  const auto group = join_as_asked();
  auto network = layers_of_gathers();
  {
    ZeroOptimizer optimizer(network->parameters(), group, SGDOptions(0.1).momentum(0.9), lasting());
    const auto step = [&] {
      lasting_step(group, network, optimizer);
      expect_closed(network, "after a step");
    };
    step();
    auto& first = *network->ptr(0);
    optimizer.wait_for(first);
    for (const auto& parameter : first.parameters()) parameter.sum();
    const auto rest = text_of<c10::Error>([&] { network->ptr(4)->parameters()[0].sum(); });
    expect(contains(rest, "still being gathered"), rest);
    optimizer.wait();
    optimizer.wait();
    expect_open(network, "after wait()");
    step();
    const auto state = optimizer.consolidated_state();
    expect_open(network, "after consolidated_state()");
    step();
    {
      Join scope({optimizer});
      expect_open(network, "in a join");
      network->forward(gather_batch(group, 0)).square().mean().backward();
      optimizer.step();
      expect_open(network, "after a step in a join");
      scope.finish();
    }
    step();
    optimizer.step([&] {
      expect_open(network, "in a closure");
      return at::Tensor();
    });
    expect_closed(network, "after a step without gradients");
  }
  expect_open(network, "after the optimizer");
}

/// The last rank is killed before its third step: the others are told in wait(), or in step() where it is known then.
void killed_in_lasting_gathers() {
  const auto group = init({.backend = Backend::kGloo, .timeout = std::chrono::seconds(60)});
  auto network = layers_of_gathers();
  ZeroOptimizer optimizer(network->parameters(), group, SGDOptions(0.1), lasting());
  for (int i = 0; i < 2; ++i) lasting_step(group, network, optimizer);
  optimizer.wait();
  network->forward(gather_batch(group, 0)).square().mean().backward();
  const int last = group.world_size() - 1;
  if (group.rank() == last) {
    ::raise(SIGKILL);
    std::abort();
  }
  const auto gone = "rank " + std::to_string(last) + " is gone";
  for (int i = 0; i < 2; ++i) {
    const auto text = text_of<CommunicationError>([&] {
      optimizer.step();
      optimizer.wait();
    });
    expect(contains(text, gone), text);
  }
}

}  // namespace

std::map<std::string, Scenario> zero_gather_scenarios() {
  return {{"zero_lasting_gathers", zero_lasting_gathers},
          {"zero_closed_parameters", zero_closed_parameters},
          {"killed_in_lasting_gathers", killed_in_lasting_gathers}};
}

}  // namespace taas::test
