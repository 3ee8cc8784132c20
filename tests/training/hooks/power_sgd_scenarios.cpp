// PowerSGD: what it sends, and how it goes on from a checkpoint.
#include <torch/nn/modules/linear.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

#include "hooks/hook_training.hpp"
#include "rank_scenarios.hpp"
#include "taas/checkpoint.hpp"
#include "taas/comm_hooks.hpp"
#include "taas/distributed_data_parallel.hpp"
#include "taas/error.hpp"

namespace taas::test {
namespace {

using torch::nn::Linear;

std::string file_of_this_rank() {
  return (std::filesystem::temp_directory_path() / ("taas-power-sgd-" + std::to_string(::getpid()) + ".pt")).string();
}

void power_sgd() {
  auto group = init();
  const auto start = text_of<InvalidArgument>([&] { PowerSGDState(group, {.start_powerSGD_iter = 1}); });
  expect(contains(start, "start_powerSGD_iter must be at least 2"), start);
  const auto rank = text_of<InvalidArgument>([&] { PowerSGDState(group, {.matrix_approximation_rank = 0}); });
  expect(contains(rank, "matrix_approximation_rank must be at least 1, not 0"), rank);

  auto state = std::make_shared<PowerSGDState>(
      group, PowerSGDOptions{.start_powerSGD_iter = 2, .orthogonalization_epsilon = 1e-8});
  DistributedDataParallel model(Linear(3, 20), group, kManyBuckets);
  model.register_comm_hook(powerSGD_hook(state));
  for (int step = 0; step < 2; ++step) one_step(model, 1);
  expect(state->compression_stats().numel_after_compression == 0, "not begun");
  for (int step = 0; step < 2; ++step) one_step(model, static_cast<float>(1 + group.rank()));
  const auto stats = state->compression_stats();
  expect(stats.numel_before_compression == 2 * (3 * 20 + 20), "weight and bias, twice");
  expect(stats.numel_after_compression == 2 * (3 + 20 + 20), "a row and a column in the place of the weight");
  // The gradient has rank 1, so that nothing is lost.
  expect(at::allclose(model.module().weight.grad(), at::full({20, 3}, 1.5)), "the average");
}

/// Gradients of many ranks' own numbers: compression loses something, and error feedback brings it back later.
at::Tensor compressed_gradient(DistributedDataParallel<torch::nn::LinearImpl>& model, int step, int rank) {
  model.zero_grad();
  const auto inputs = at::arange(24, at::kFloat).view({8, 3}).mul(0.3F * static_cast<float>(1 + step + 5 * rank)).sin();
  const auto factors = at::arange(160, at::kFloat).view({8, 20}).mul(0.7F * static_cast<float>(1 + step)).cos();
  (model(inputs) * factors).sum().backward();
  return model.module().weight.grad().clone();
}

/// Of a state that was saved after some steps, what comes in the next one: in a wrapper that is new, too.
void check_resumed(const ProcessGroup& group, const PowerSGDOptions& options,
                   std::shared_ptr<CommHook> (*hook)(std::shared_ptr<PowerSGDState>)) {
  auto state = std::make_shared<PowerSGDState>(group, options);
  Linear network(3, 20);
  DistributedDataParallel model(network, group, kManyBuckets);
  model.register_comm_hook(hook(state));
  for (int step = 0; step < 4; ++step) compressed_gradient(model, step, group.rank());
  const auto path = file_of_this_rank();
  save_checkpoint(path, {.extra = {{"hook", state->state()}}});
  const auto expected = compressed_gradient(model, 4, group.rank());
  const auto stats = state->compression_stats();

  auto other = options;
  other.random_seed = 99;
  auto resumed = std::make_shared<PowerSGDState>(group, other);
  DistributedDataParallel again(network, group, kManyBuckets);
  again.register_comm_hook(hook(resumed));
  resumed->load_state(load_checkpoint(path).extra.at("hook"));
  std::filesystem::remove(path);
  compressed_gradient(again, 17, group.rank());  // a plain average
  expect(at::equal(compressed_gradient(again, 4, group.rank()), expected), "the gradient after a resume");
  expect(resumed->compression_stats().numel_after_compression == stats.numel_after_compression, "the counts");
}

void power_sgd_resumed() {
  auto group = init();
  for (const bool warm : {true, false}) {
    const PowerSGDOptions options{.start_powerSGD_iter = 2, .warm_start = warm};
    check_resumed(group, options, powerSGD_hook);
    check_resumed(group, options, batched_powerSGD_hook);
  }
  PowerSGDState state(group);
  const auto text = text_of<CheckpointError>([&] { state.load_state(c10::IValue(3)); });
  expect(contains(text, "this is not the state of PowerSGD"), text);

  // The state of another model: its memories fit no bucket.
  auto small = std::make_shared<PowerSGDState>(group, PowerSGDOptions{.start_powerSGD_iter = 2});
  DistributedDataParallel model(Linear(2, 9), group, kManyBuckets);
  model.register_comm_hook(powerSGD_hook(small));
  for (int step = 0; step < 4; ++step) one_step(model, 1);
  auto large = std::make_shared<PowerSGDState>(group, PowerSGDOptions{.start_powerSGD_iter = 2});
  DistributedDataParallel other(Linear(3, 20), group, kManyBuckets);
  other.register_comm_hook(powerSGD_hook(large));
  large->load_state(small->state());
  for (int step = 0; step < 3; ++step) one_step(other, static_cast<float>(1 + group.rank()));
  expect(at::allclose(other.module().weight.grad(), at::full({20, 3}, 1.5)), "the average");
}

}  // namespace

std::map<std::string, Scenario> power_sgd_scenarios() {
  return {{"power_sgd", power_sgd}, {"power_sgd_resumed", power_sgd_resumed}};
}

}  // namespace taas::test
