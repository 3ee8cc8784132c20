// A sharded optimizer whose state goes from one number of ranks to another: 4, then 2, then 8.
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>
#include <unistd.h>

#include <filesystem>

#include "rank_scenarios.hpp"
#include "taas/checkpoint.hpp"
#include "taas/collectives.hpp"
#include "taas/distributed_data_parallel.hpp"
#include "taas/zero.hpp"

namespace taas::test {
namespace {

namespace nn = torch::nn;

constexpr int kStepsInEachZeroWorld = 3;

/// Known to all ranks of one test, whose parent is the same.
std::string path_of_zero_worlds() {
  return (std::filesystem::temp_directory_path() / ("taas-zero-worlds-" + std::to_string(::getppid()) + ".pt"))
      .string();
}

nn::Sequential make_zero_world_network() {
  at::manual_seed(4);
  return nn::Sequential(nn::Linear(5, 37), nn::Linear(37, 3));
}

const torch::optim::AdamWOptions kZeroWorldOptions = torch::optim::AdamWOptions(0.01).weight_decay(0.1);

/// A loss that is the same in every world: that of rank 0 alone, in the average over a power of two of them.
at::Tensor zero_world_inputs(int number) { return at::linspace(-1, 1 + number, 30).view({6, 5}); }

void zero_world_step(nn::Sequential& network, torch::optim::Optimizer& optimizer, int number) {
  optimizer.zero_grad();
  network->forward(zero_world_inputs(number)).square().mean().backward();
  optimizer.step();
}

void expect_same_parameters(const nn::Sequential& expected, const nn::Sequential& network, const char* when) {
  const auto theirs = module_state(*expected), ours = module_state(*network);
  for (const auto& [name, tensor] : theirs) expect(at::equal(tensor, ours.at(name)), name + " differs " + when);
}

/// Goes on where the last world was, and has the parameters of one process that made all the steps.
void train_in_zero_world(int steps_before) {
  auto group = init({.backend = Backend::kGloo});
  auto straight = make_zero_world_network(), network = make_zero_world_network();
  torch::optim::AdamW whole(straight->parameters(), kZeroWorldOptions);
  for (int step = 0; step < steps_before; ++step) zero_world_step(straight, whole, step);
  DistributedDataParallel model(network, group);
  ZeroRedundancyOptimizer sharded(network->parameters(), group, optimizer_of<torch::optim::AdamW>(kZeroWorldOptions));
  const auto path = path_of_zero_worlds();
  if (steps_before > 0) {
    const auto checkpoint = load_checkpoint(path);
    expect(checkpoint.epoch == steps_before, "another checkpoint");
    load_module_state(*network, checkpoint.model);
    sharded.load_state(checkpoint.optimizer);
    expect_same_parameters(straight, network, "after loading");
  }
  for (int step = steps_before; step < steps_before + kStepsInEachZeroWorld; ++step) {
    zero_world_step(straight, whole, step);
    const double share = group.rank() == 0 ? group.world_size() : 0;
    model.zero_grad();
    (model(zero_world_inputs(step)).square().mean() * share).backward();
    sharded.step();
  }
  expect_same_parameters(straight, network, "after training");
  auto state = sharded.consolidated_state();
  barrier(group);  // nobody writes what another rank may still read
  if (group.rank() != 0) return;
  save_checkpoint(
      path,
      {.epoch = steps_before + kStepsInEachZeroWorld, .model = module_state(*network), .optimizer = std::move(state)});
}

}  // namespace

std::map<std::string, Scenario> zero_world_scenarios() {
  return {{"first_zero_world", [] { train_in_zero_world(0); }},
          {"second_zero_world", [] { train_in_zero_world(kStepsInEachZeroWorld); }},
          {"third_zero_world", [] { train_in_zero_world(2 * kStepsInEachZeroWorld); }},
          {"forget_zero_worlds", [] { std::filesystem::remove(path_of_zero_worlds()); }}};
}

}  // namespace taas::test
