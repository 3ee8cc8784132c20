#include <ATen/ATen.h>

#include <limits>
#include <string>

#include "rank_scenarios.hpp"
#include "taas/checkpoint.hpp"
#include "taas/collectives.hpp"
#include "taas/distributed_data_parallel.hpp"
#include "taas/error.hpp"
#include "taas/optimizers.hpp"
#include "taas/zero.hpp"
#include "zero/zero_network.hpp"

namespace taas::test {
namespace {

using torch::optim::AdamOptions;
using torch::optim::AdamWOptions;
using torch::optim::SGDOptions;

void zero_refusals() {
  auto group = join_as_asked();
  auto net = same_net();
  const auto stage =
      text_of<InvalidArgument>([&] { ZeroOptimizer(net->parameters(), group, AdamOptions(), {.stage = 3}); });
  expect(stage == "stage must be 1 or 2, not 3", stage);
  const auto none = text_of<InvalidArgument>([&] { ZeroOptimizer({at::ones({2}, here())}, group, AdamOptions()); });
  expect(contains(none, "no parameter needs a gradient"), none);
  ZeroOptimizer optimizer(net->parameters(), group, AdamOptions());
  const auto unused =
      text_of<Exception>([&] { zero_loss(net->forward(zero_images(0, group.rank()), false), 0, 0).backward(); });
  expect(contains(unused, "parameters that got no gradient in this backward on rank") &&
             contains(unused, ": 11, 12 (by their place"),
         unused);
}

void zero_clip() {
  auto group = join_as_asked();
  auto net = same_net();
  auto other = same_net();
  DistributedDataParallel model(other, group);
  ZeroOptimizer optimizer(net->parameters(), group, SGDOptions(0.1));
  SGD plain(other->parameters(), SGDOptions(0.1));
  zero_loss(net->forward(zero_images(0, group.rank()), true), 0, group.rank()).backward();
  zero_loss(model(zero_images(0, group.rank()), true), 0, group.rank()).backward();
  for (const auto& parameter : net->parameters()) expect(!parameter.grad().defined(), "a gradient was kept");
  std::vector<at::Tensor> all;
  for (const auto& parameter : other->parameters()) all.push_back(parameter.grad().flatten());
  const auto norm = at::cat(all).norm().item<double>();
  const auto largest = at::cat(all).abs().max().item<double>();
  const auto found = optimizer.clip_grad_norm(1e9, std::numeric_limits<double>::infinity());
  expect(group_device.is_cuda() ? std::abs(found - largest) < 1e-5 * largest : found == largest, "the largest");
  expect(std::abs(optimizer.clip_grad_norm(norm / 2) - norm) < 1e-5 * norm, "the norm");
  expect(std::abs(optimizer.clip_grad_norm(1e9) - norm / 2) < 1e-4 * norm, "the norm once clipped");
}

void zero_reload() {
  auto group = join_as_asked();
  const auto defaults = AdamWOptions(1e-2).amsgrad(true);
  auto net = same_net();
  ZeroOptimizer first(decayed_weights(net, defaults), group, defaults);
  for (int step = 0; step < 3; ++step) {
    zero_loss(net->forward(zero_images(step, group.rank()), true), step, group.rank()).backward();
    first.step();
    first.zero_grad();
  }
  c10::IValue of_each;
  for (int root = 0; root < group.world_size(); ++root) {
    const auto state = first.consolidated_state(root);
    expect((group.rank() == root) != state.isNone(), "only the root has the state");
    if (group.rank() == root) of_each = state;
  }
  auto copy = same_net();
  ZeroOptimizer second(decayed_weights(copy, defaults), group, defaults, {.bucket_cap_mb = 0.01});
  second.load_state(of_each);
  const auto again = second.consolidated_state();
  if (group.rank() == 0) expect(same_values(again, of_each), "what was loaded is what was saved");
  AdamW whole(decayed_weights(copy, defaults), defaults);
  load_optimizer_state(whole, of_each);
  expect(same_values(optimizer_state(whole), of_each), "an optimizer that is not sharded takes it");
  ZeroOptimizer other(copy->parameters(), group, defaults);
  expect(contains(text_of<CheckpointError>([&] { other.load_state(of_each); }), "has 2 parameter groups"),
         "other groups");
}

void zero_memory() {
  auto group = join_as_asked();
  auto net = same_net();
  ZeroOptimizer optimizer(net->parameters(), group, AdamOptions());
  expect(optimizer.state_bytes() == 0, "state before the first step");
  zero_loss(net->forward(zero_images(0, group.rank()), true), 0, group.rank()).backward();
  optimizer.step();
  std::int64_t whole = 0;
  for (const auto& parameter : net->parameters()) whole += parameter.numel() * 2 * 4;
  const double ratio = static_cast<double>(optimizer.state_bytes()) / static_cast<double>(whole);
  expect(ratio < 1.0 / group.world_size() + 0.05, "this rank has " + std::to_string(ratio) + " of the state");
}

}  // namespace

std::map<std::string, Scenario> zero_scenarios() {
  return {{"zero_refusals", zero_refusals},
          {"zero_clip", zero_clip},
          {"zero_reload", zero_reload},
          {"zero_memory", zero_memory}};
}

}  // namespace taas::test
