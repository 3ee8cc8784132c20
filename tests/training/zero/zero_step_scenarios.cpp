// A sharded optimizer's step without gradients, with some of them, and with gradients that are not averaged yet.
#include <ATen/ATen.h>

#include <string>

#include "rank_scenarios.hpp"
#include "taas/distributed_data_parallel.hpp"
#include "taas/error.hpp"
#include "taas/optimizers.hpp"
#include "taas/zero.hpp"
#include "zero/zero_network.hpp"

namespace taas::test {
namespace {

using torch::optim::AdamOptions;

void expect_parameters(const MixedNet& net, const std::vector<at::Tensor>& expected, const std::string& what) {
  const auto parameters = net->parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    expect(same_here()(parameters[i], expected[i]), what + ": parameter " + std::to_string(i) + " differs");
  }
}

void zero_without_gradients() {
  auto group = join_as_asked();
  for (const int stage : {1, 2}) {
    const auto name = "stage " + std::to_string(stage);
    auto net = same_net();
    ZeroOptimizer optimizer(net->parameters(), group, AdamOptions(0.1), {.stage = stage});
    const auto before = copies_of(net);
    expect(optimizer.clip_grad_norm(1.0) == 0, name + ": the norm of no gradients");
    optimizer.step();
    expect(optimizer.state_bytes() == 0, name + ": state of a step without gradients");
    zero_loss(net->forward(zero_images(0, group.rank()), true), 0, group.rank()).backward();
    optimizer.zero_grad();
    expect(optimizer.clip_grad_norm(1.0) == 0, name + ": the norm after zero_grad()");
    optimizer.step();
    expect_parameters(net, before, name);
  }
}

void zero_not_averaged() {
  auto group = join_as_asked();
  auto net = same_net();
  ZeroOptimizer optimizer(net->parameters(), group, AdamOptions(0.1));
  const auto before = copies_of(net);
  const auto backward = [&] {
    zero_loss(net->forward(zero_images(0, group.rank()), true), 0, group.rank()).backward();
  };
  {
    const auto scope = optimizer.no_sync();
    backward();
  }
  const auto refused = text_of<Exception>([&] { optimizer.step(); });
  expect(contains(refused, "parameter 0 of the optimizer has a gradient that is not averaged over the ranks") &&
             contains(refused, "outside of no_sync()"),
         refused);
  expect(text_of<Exception>([&] { optimizer.clip_grad_norm(1.0); }) == refused, "clipped before it was averaged");
  expect_parameters(net, before, "after a step that was refused");
  backward();
  optimizer.step();
  expect(!at::equal(net->scale, before.back()) || !at::equal(net->parameters()[0], before[0]), "no step was made");
  optimizer.zero_grad();
  optimizer.step();
}

/// The branch is used in the first of two backwards alone.
void zero_accumulated_branch() {
  at::set_num_threads(1);
  auto group = join_as_asked();
  auto net = same_net(), other = same_net();
  DistributedDataParallel model(other, group, {.bucket_cap_mb = 0.01, .find_unused_parameters = true});
  Adam whole(other->parameters(), AdamOptions(0.1));
  ZeroOptimizer sharded(net->parameters(), group, AdamOptions(0.1),
                        {.bucket_cap_mb = 0.01, .find_unused_parameters = true});
  const auto loss = [&](auto& forward, bool first) {
    return zero_loss(forward(zero_images(first ? 0 : 1, group.rank()), first), 0, group.rank());
  };
  const auto plain = [&](const at::Tensor& images, bool extra) { return net->forward(images, extra); };
  {
    const auto scope = model.no_sync();
    const auto other_scope = sharded.no_sync();
    loss(model, true).backward();
    loss(plain, true).backward();
  }
  loss(model, false).backward();
  loss(plain, false).backward();
  whole.step();
  sharded.step();
  expect_parameters(net, copies_of(other), "a branch of the first backward alone");
}

/// A backward that failed in the middle leaves nothing behind.
void zero_failed_backward() {
  auto group = join_as_asked();
  auto table = at::ones({4, 3}, here()).set_requires_grad(true), weight = at::ones({3}, here()).set_requires_grad(true);
  ZeroOptimizer optimizer({table, weight}, group, AdamOptions(0.1));
  const auto rows = at::arange(2, here(at::kLong));
  const auto sparse = text_of<InvalidArgument>(
      [&] { (at::embedding(table, rows, -1, false, /*sparse=*/true) * weight).sum().backward(); });
  expect(contains(sparse, "has a sparse gradient: taas::ZeroOptimizer takes dense ones only"), sparse);
  optimizer.zero_grad();
  (at::embedding(table, rows) * weight).sum().backward();
  optimizer.step();
  expect(at::allclose(weight, at::full({3}, 0.9, here())), "the step after it");
}

}  // namespace

std::map<std::string, Scenario> zero_step_scenarios() {
  return {{"zero_without_gradients", zero_without_gradients},
          {"zero_not_averaged", zero_not_averaged},
          {"zero_accumulated_branch", zero_accumulated_branch},
          {"zero_failed_backward", zero_failed_backward}};
}

}  // namespace taas::test
