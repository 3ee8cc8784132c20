// What a sharded optimizer trains, beside DistributedDataParallel with the whole one.
#include <ATen/ATen.h>

#include <functional>
#include <optional>
#include <string>

#include "rank_scenarios.hpp"
#include "taas/checkpoint.hpp"
#include "taas/distributed_data_parallel.hpp"
#include "taas/optimizers.hpp"
#include "taas/zero.hpp"
#include "zero/zero_network.hpp"

namespace taas::test {
namespace {

using torch::optim::AdamOptions;
using torch::optim::AdamWOptions;
using torch::optim::SGDOptions;

constexpr int kZeroSteps = 10;

using Branch = std::function<bool(int step, int rank)>;
bool always(int /*step*/, int /*rank*/) { return true; }

struct Trained {
  std::vector<at::Tensor> parameters;
  c10::IValue state;
};

void change_rate(torch::optim::Optimizer& optimizer, int step) {
  if (step % 4 == 3) {
    for (auto& group : optimizer.param_groups()) group.options().set_lr(group.options().get_lr() * 0.5);
  }
}

struct Setting {
  ZeroOptions zero{};
  Branch branch = always;
  int accumulate = 1;
};

template <class Kind, class Options>
Trained train_whole(const ProcessGroup& group, const Options& defaults, const Setting& setting) {
  auto net = same_net();
  DistributedDataParallel model(
      net, group,
      {.bucket_cap_mb = setting.zero.bucket_cap_mb, .find_unused_parameters = setting.zero.find_unused_parameters});
  Kind optimizer(decayed_weights(net, defaults), defaults, {.fused = setting.zero.fused});
  for (int step = 0; step < kZeroSteps; ++step) {
    const auto backward = [&] {
      zero_loss(model(zero_images(step, group.rank()), setting.branch(step, group.rank())), step, group.rank())
          .backward();
    };
    if ((step + 1) % setting.accumulate != 0) {
      auto scope = model.no_sync();
      backward();
      continue;
    }
    backward();
    optimizer.step();
    model.zero_grad();
    change_rate(optimizer, step);
  }
  return {copies_of(net), optimizer_state(optimizer)};
}

template <class Options>
Trained train_sharded(const ProcessGroup& group, const Options& defaults, const Setting& setting) {
  auto net = same_net();
  std::optional<DistributedDataParallel<MixedNetImpl>> model;
  if (setting.zero.stage == 1) {
    model.emplace(net, group,
                  DistributedDataParallelOptions{.bucket_cap_mb = setting.zero.bucket_cap_mb,
                                                 .find_unused_parameters = setting.zero.find_unused_parameters});
  }
  auto options = setting.zero;
  options.order = net->parameters();
  ZeroOptimizer optimizer(decayed_weights(net, defaults), group, defaults, options);
  for (int step = 0; step < kZeroSteps; ++step) {
    const auto backward = [&] {
      const auto images = zero_images(step, group.rank());
      const bool extra = setting.branch(step, group.rank());
      zero_loss(model ? (*model)(images, extra) : net->forward(images, extra), step, group.rank()).backward();
    };
    if ((step + 1) % setting.accumulate != 0) {
      if (model) {
        auto scope = model->no_sync();
        backward();
      } else {
        auto scope = optimizer.no_sync();
        backward();
      }
      continue;
    }
    backward();
    optimizer.step();
    optimizer.zero_grad();
    change_rate(optimizer, step);
  }
  return {copies_of(net), optimizer.consolidated_state()};
}

void expect_same(const Trained& whole, const Trained& sharded, const ProcessGroup& group, const std::string& what,
                 SameTensors same = same_here()) {
  for (std::size_t i = 0; i < whole.parameters.size(); ++i) {
    const auto &wanted = whole.parameters[i], &got = sharded.parameters[i];
    const auto difference = (wanted - got).abs().max().item<double>();
    expect(same(got, wanted),
           what + ": parameter " + std::to_string(i) + " differs by " + std::to_string(difference * 1e9) + "e-9");
  }
  if (group.rank() != 0) return;
  expect(same_values(whole.state, sharded.state, same), what + ": the consolidated state differs");
}

void compare_all(const ProcessGroup& group, const std::string& what, const Setting& setting) {
  const auto sgd = SGDOptions(0.05).momentum(0.9);
  const auto adam = AdamOptions(1e-2).eps(eps_here());
  const auto adamw = AdamWOptions(1e-2).eps(eps_here()).amsgrad(true);
  // The fused kernel of SGD rounds the last few elements of a tensor otherwise, and slices end elsewhere.
  expect_same(train_whole<SGD>(group, sgd, setting), train_sharded(group, sgd, setting), group, what + ", SGD",
              setting.zero.fused ? are_near : same_here());
  expect_same(train_whole<Adam>(group, adam, setting), train_sharded(group, adam, setting), group, what + ", Adam");
  expect_same(train_whole<AdamW>(group, adamw, setting), train_sharded(group, adamw, setting), group, what + ", AdamW");
}

void zero_parity() {
  at::set_num_threads(1);
  auto group = join_as_asked();
  for (const int stage : {1, 2}) {
    const auto name = "stage " + std::to_string(stage);
    compare_all(group, name, {.zero = {.stage = stage}});
    compare_all(group, name + ", fused", {.zero = {.stage = stage, .fused = true}});
    compare_all(group, name + ", small buckets", {.zero = {.stage = stage, .bucket_cap_mb = 0.01}});
    compare_all(group, name + ", accumulation", {.zero = {.stage = stage}, .accumulate = 2});
    compare_all(group, name + ", unused",
                {.zero = {.stage = stage, .bucket_cap_mb = 0.01, .find_unused_parameters = true},
                 .branch = [](int step, int rank) { return step % 3 == 0 && (step + rank) % 2 == 0; }});
  }
}

void zero_scatter() {
  at::set_num_threads(1);
  auto group = join_as_asked();
  const auto adam = AdamOptions(1e-3).eps(eps_here());
  const auto whole = train_whole<Adam>(group, adam, {});
  const auto sharded = train_sharded(group, adam, {.zero = {.bucket_cap_mb = 0.01, .reduce_scatter = true}});
  for (std::size_t i = 0; i < whole.parameters.size(); ++i) {
    const auto same = group.world_size() == 2 ? same_here() : are_near;
    expect(same(sharded.parameters[i], whole.parameters[i]), "parameter " + std::to_string(i));
  }
}

}  // namespace

std::map<std::string, Scenario> zero_parity_scenarios() {
  return {{"zero_parity", zero_parity}, {"zero_scatter", zero_scatter}};
}

}  // namespace taas::test
