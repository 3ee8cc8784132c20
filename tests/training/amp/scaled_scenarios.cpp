// Mixed precision over several ranks: Autocast and a GradScaler with DistributedDataParallel and with sharded
// optimizers. A gradient that is infinite on one rank makes all of them leave out the step.
#include <ATen/ATen.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <array>
#include <functional>
#include <limits>
#include <optional>
#include <string>

#include "../group/scenario_tensors.hpp"
#include "../rank_scenarios.hpp"
#include "taas/amp.hpp"
#include "taas/clip_grad.hpp"
#include "taas/collectives.hpp"
#include "taas/distributed_data_parallel.hpp"
#include "taas/optimizers.hpp"
#include "taas/zero.hpp"

namespace taas::test {
namespace {

using torch::optim::AdamWOptions;
using ScaledNet = torch::nn::Sequential;

constexpr int kInfiniteStep = 4;
/// After each step: doubled after two good ones in a row, halved after the one that is left out.
constexpr std::array<double, 8> kScales{1024, 2048, 2048, 4096, 2048, 2048, 4096, 4096};
constexpr double kClippedNorm = 0.05;
const AdamWOptions kScaledOptions = AdamWOptions(1e-2).eps(1e-4);

ScaledNet scaled_net() {
  at::manual_seed(5);
  ScaledNet net(torch::nn::Linear(6, 150), torch::nn::ReLU(), torch::nn::Linear(150, 4));
  net->to(group_device);
  return net;
}

/// In the low type of this device. The last bias alone gets an infinite gradient, and on the last rank alone.
at::Tensor scaled_loss(const ScaledNet& net, const std::function<at::Tensor(const at::Tensor&)>& forward, int step,
                       const ProcessGroup& group) {
  const auto inputs = at::linspace(-1, 1 + step + group.rank(), 30, here()).view({5, 6});
  at::Tensor outputs;
  {
    const Autocast autocast(group_device.type());
    outputs = forward(inputs);
  }
  const auto low = group_device.is_cuda() ? at::kHalf : at::kBFloat16;
  expect(outputs.scalar_type() == low, "Autocast computed in another type");
  auto loss = outputs.to(at::kFloat).square().mean();
  const bool infinite = step == kInfiniteStep && group.rank() == group.world_size() - 1;
  return infinite ? loss + (net->parameters().back() * std::numeric_limits<float>::infinity()).sum() : loss;
}

struct ScaledTraining {
  const ProcessGroup& group;
  ScaledNet net;
  std::function<at::Tensor(const at::Tensor&)> forward;
  std::function<void()> zero_grad, clip;
  torch::optim::Optimizer& optimizer;
  GradScaler scaler;

  std::vector<at::Tensor> parameters() const {
    std::vector<at::Tensor> all;
    for (const auto& parameter : net->parameters()) all.push_back(parameter.detach().clone());
    return all;
  }

  std::vector<at::Tensor> run() {
    for (std::size_t step = 0; step < kScales.size(); ++step) {
      const auto before = parameters();
      zero_grad();
      scaler.scale(scaled_loss(net, forward, static_cast<int>(step), group)).backward();
      scaler.unscale_(optimizer);
      clip();
      const bool stepped = scaler.step(optimizer);
      scaler.update();
      const auto name = "step " + std::to_string(step);
      expect(stepped == (step != kInfiniteStep), name + (stepped ? " was made" : " was left out"));
      expect(are_equal(before[0], net->parameters()[0]) == !stepped, name + " and the parameters");
      expect(scaler.get_scale() == kScales[step], name + ": the scale is " + std::to_string(scaler.get_scale()));
    }
    for (const auto& parameter : net->parameters()) {
      auto first = parameter.detach().clone();
      broadcast(group, first);
      expect(are_equal(first, parameter), "the ranks have different parameters");
    }
    return parameters();
  }
};

enum class Clips { kNo, kYes };

GradScalerOptions scaler_options(std::optional<ProcessGroup> group = std::nullopt) {
  return {.init_scale = kScales[0], .growth_interval = 2, .group = std::move(group)};
}

std::vector<at::Tensor> scaled_whole(const ProcessGroup& group, Clips clips) {
  const auto net = scaled_net();
  DistributedDataParallel model(net, group);
  AdamW optimizer(net->parameters(), kScaledOptions);
  const auto clip = [&] {
    if (clips == Clips::kYes) clip_grad_norm_(net->parameters(), kClippedNorm);
  };
  ScaledTraining training{group,
                          net,
                          [&](const at::Tensor& inputs) { return model(inputs); },
                          [&] { model.zero_grad(); },
                          clip,
                          optimizer,
                          GradScaler(scaler_options())};
  return training.run();
}

/// With stage 1 each rank has the gradients of all; with stage 2 ranks have to tell each other.
std::vector<at::Tensor> scaled_shards(const ProcessGroup& group, Clips clips, int stage) {
  auto net = scaled_net();
  std::optional<DistributedDataParallel<torch::nn::SequentialImpl>> model;
  if (stage == 1) model.emplace(net, group);
  ZeroOptimizer optimizer(net->parameters(), group, kScaledOptions, {.stage = stage});
  const auto forward = [&](const at::Tensor& inputs) { return model ? (*model)(inputs) : net->forward(inputs); };
  const auto clip = [&] {
    if (clips == Clips::kYes) optimizer.clip_grad_norm(kClippedNorm);
  };
  const auto options = stage == 1 ? scaler_options() : scaler_options(group);
  ScaledTraining training{group, net, forward, [&] { optimizer.zero_grad(); }, clip, optimizer, GradScaler(options)};
  return training.run();
}

void scaled_training() {
  at::set_num_threads(1);
  const auto group = join_as_asked();
  for (const auto clips : {Clips::kNo, Clips::kYes}) {
    const auto whole = scaled_whole(group, clips);
    for (const int stage : {1, 2}) {
      const auto shards = scaled_shards(group, clips, stage);
      const auto same = clips == Clips::kYes ? are_near : same_here();  // the norm is summed in another order
      for (std::size_t i = 0; i < whole.size(); ++i) {
        expect(same(shards[i], whole[i]),
               "stage " + std::to_string(stage) + ": parameter " + std::to_string(i) + " is not that of DDP");
      }
    }
  }
}

}  // namespace

std::map<std::string, Scenario> scaled_scenarios() { return {{"scaled_training", scaled_training}}; }

}  // namespace taas::test
