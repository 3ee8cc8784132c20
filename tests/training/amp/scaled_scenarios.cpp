// Mixed precision over several ranks: Autocast and a GradScaler with DistributedDataParallel and with sharded
// optimizers. A gradient that is infinite on one rank makes all of them leave out the step.
#include <ATen/ATen.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>

#include <array>
#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "../group/scenario_tensors.hpp"
#include "../rank_scenarios.hpp"
#include "taas/amp.hpp"
#include "taas/clip_grad.hpp"
#include "taas/collectives.hpp"
#include "taas/distributed_data_parallel.hpp"
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

const GradScalerOptions kScalerOptions{.init_scale = kScales[0], .growth_interval = 2};

std::vector<at::Tensor> train_scaled(
    const ProcessGroup& group, Clips clips,
    const std::function<std::unique_ptr<torch::optim::Optimizer>(const ScaledNet&)>& make) {
  const auto net = scaled_net();
  DistributedDataParallel model(net, group);
  const auto optimizer = make(net);
  const auto clip = [&] {
    if (clips == Clips::kYes) clip_grad_norm_(net->parameters(), kClippedNorm);
  };
  ScaledTraining training{group,
                          net,
                          [&](const at::Tensor& inputs) { return model(inputs); },
                          [&] { model.zero_grad(); },
                          clip,
                          *optimizer,
                          GradScaler(kScalerOptions)};
  return training.run();
}

void scaled_training() {
  at::set_num_threads(1);
  const auto group = join_as_asked();
  for (const auto clips : {Clips::kNo, Clips::kYes}) {
    const auto whole = train_scaled(group, clips, [](const ScaledNet& net) {
      return std::make_unique<torch::optim::AdamW>(net->parameters(), kScaledOptions);
    });
    const auto sharded = train_scaled(group, clips, [&](const ScaledNet& net) {
      return std::make_unique<ZeroRedundancyOptimizer>(net->parameters(), group,
                                                       optimizer_of<torch::optim::AdamW>(kScaledOptions));
    });
    for (std::size_t i = 0; i < whole.size(); ++i) {
      expect(same_here()(sharded[i], whole[i]), "parameter " + std::to_string(i) + " is not that of DDP");
    }
  }
}

}  // namespace

std::map<std::string, Scenario> scaled_scenarios() { return {{"scaled_training", scaled_training}}; }

}  // namespace taas::test
