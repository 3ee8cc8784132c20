#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>
#include <unistd.h>

#include <filesystem>

#include "../rank_scenarios.hpp"
#include "taas/checkpoint.hpp"
#include "taas/distributed_data_parallel.hpp"
#include "taas/process_group.hpp"
#include "taas/zero.hpp"

namespace taas::test {
namespace {

constexpr int kStepsInEachWorld = 3;
const torch::optim::AdamWOptions kWorldOptions = torch::optim::AdamWOptions(0.01).weight_decay(0.1);

torch::nn::Sequential make_world_network() {
  at::manual_seed(4);
  return torch::nn::Sequential(torch::nn::Linear(5, 37), torch::nn::Linear(37, 3));
}

void step_of_world(torch::optim::Optimizer& optimizer, const at::Tensor& output, double share) {
  (output.square().mean() * share).backward();
  optimizer.step();
  optimizer.zero_grad();
}

void expect_same_parameters(const torch::nn::Sequential& one, const torch::nn::Sequential& other, const char* which) {
  const auto theirs = module_state(*one), ours = module_state(*other);
  for (const auto& [name, tensor] : theirs) expect(at::equal(tensor, ours.at(name)), which + (" differs in " + name));
}

/// Goes on where the last world was, with an optimizer on each rank and with one that is spread over them, and has the
/// parameters of one process that made all the steps.
void train_in_world(int begin) {
  auto group = init({.backend = Backend::kGloo});
  auto straight = make_world_network(), whole = make_world_network(), sharded = make_world_network();
  torch::optim::AdamW of_straight(straight->parameters(), kWorldOptions), of_whole(whole->parameters(), kWorldOptions);
  ZeroRedundancyOptimizer of_sharded(sharded->parameters(), group, optimizer_of<torch::optim::AdamW>(kWorldOptions));
  // Known to all ranks of one test, whose parent is the same.
  namespace fs = std::filesystem;
  const auto path = (fs::temp_directory_path() / ("taas-worlds-" + std::to_string(::getppid()) + ".pt")).string();
  if (begin > 0) {
    const auto checkpoint = load_checkpoint(path);
    expect(checkpoint.epoch == begin, "another checkpoint");
    load_module_state(*whole, checkpoint.model);
    load_module_state(*sharded, checkpoint.model);
    load_optimizer_state(of_whole, checkpoint.optimizer);
    of_sharded.load_state(checkpoint.optimizer);
  }
  DistributedDataParallel whole_model(whole, group), sharded_model(sharded, group);
  // A loss that is the same in every world: that of rank 0 alone, in the average over a power of two of them.
  const double share = group.rank() == 0 ? group.world_size() : 0;
  const int end = begin + kStepsInEachWorld;
  for (int number = 0; number < end; ++number) {
    const auto inputs = at::linspace(-1, 1 + number, 30).view({6, 5});
    step_of_world(of_straight, straight->forward(inputs), 1);
    if (number < begin) continue;
    step_of_world(of_whole, whole_model(inputs), share);
    step_of_world(of_sharded, sharded_model(inputs), share);
  }
  expect_same_parameters(straight, whole, "the whole optimizer");
  expect_same_parameters(straight, sharded, "the sharded optimizer");
  const auto state = of_sharded.consolidated_state();
  if (group.rank() != 0) return;
  save_checkpoint(path, {.epoch = end, .model = module_state(*whole, StateTensors::kShared), .optimizer = state});
  if (end == 3 * kStepsInEachWorld) fs::remove(path);
}

}  // namespace

std::map<std::string, Scenario> checkpoint_scenarios() {
  return {{"first_world", [] { train_in_world(0); }},
          {"second_world", [] { train_in_world(kStepsInEachWorld); }},
          {"third_world", [] { train_in_world(2 * kStepsInEachWorld); }}};
}

}  // namespace taas::test
