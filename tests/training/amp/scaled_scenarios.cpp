// Mixed precision over several ranks: Autocast and a GradScaler with DistributedDataParallel, and with the sharded
// optimizer on it. A gradient that is infinite on one rank makes all of them leave out the step.
#include <ATen/ATen.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>

#include <array>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
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

using MakeOptimizer = std::function<std::unique_ptr<torch::optim::Optimizer>(const std::vector<at::Tensor>&)>;

constexpr int kInfiniteStep = 4;
/// After each step: doubled after two good ones in a row, halved after the one that is left out.
constexpr std::array<double, 8> kScales{1024, 2048, 2048, 4096, 2048, 2048, 4096, 4096};

/// Clips to `max_norm` where that is given. Returns the parameters.
std::vector<at::Tensor> train_scaled(const ProcessGroup& group, std::optional<double> max_norm,
                                     const MakeOptimizer& make) {
  at::manual_seed(5);
  torch::nn::Sequential net(torch::nn::Linear(6, 150), torch::nn::ReLU(), torch::nn::Linear(150, 4));
  net->to(group_device);
  const auto parameters = net->parameters();
  DistributedDataParallel model(net, group);
  const auto optimizer = make(parameters);
  GradScaler scaler({.init_scale = kScales[0], .growth_interval = 2});
  for (int step = 0; step < static_cast<int>(kScales.size()); ++step) {
    const auto before = parameters[0].detach().clone();
    const at::Tensor inputs = at::linspace(-1, 1 + step + group.rank(), 30, here()).view({5, 6});
    at::Tensor outputs;
    {
      const Autocast autocast(group_device.type());
      outputs = model(inputs);
    }
    expect(outputs.scalar_type() == (group_device.is_cuda() ? at::kHalf : at::kBFloat16),
           "Autocast computed in another type");
    auto loss = outputs.to(at::kFloat).square().mean();
    // The last bias alone gets an infinite gradient, and on the last rank alone.
    if (step == kInfiniteStep && group.rank() == group.world_size() - 1)
      loss = loss + (parameters.back() * std::numeric_limits<float>::infinity()).sum();
    model.zero_grad();
    scaler.scale(loss).backward();
    if (max_norm) {
      scaler.unscale_(*optimizer);
      clip_grad_norm_(parameters, *max_norm);
    }
    const bool stepped = scaler.step(*optimizer);
    scaler.update();
    const auto name = "step " + std::to_string(step);
    expect(stepped == (step != kInfiniteStep), name + (stepped ? " was made" : " was left out"));
    expect(are_equal(before, parameters[0]) == !stepped, name + " and the parameters");
    expect(scaler.get_scale() == kScales[static_cast<std::size_t>(step)],
           name + ": the scale is " + std::to_string(scaler.get_scale()));
  }
  for (const auto& parameter : parameters) {
    auto first = parameter.detach().clone();
    broadcast(group, first);
    expect(are_equal(first, parameter), "the ranks have different parameters");
  }
  return parameters;
}

void scaled_training() {
  at::set_num_threads(1);
  const auto group = join_as_asked();
  const auto options = torch::optim::AdamWOptions(1e-2).eps(1e-4);
  for (const std::optional<double> max_norm : {std::optional<double>(), std::optional(0.05)}) {
    const auto whole = train_scaled(group, max_norm, [&](const std::vector<at::Tensor>& parameters) {
      return std::make_unique<torch::optim::AdamW>(parameters, options);
    });
    const auto sharded = train_scaled(group, max_norm, [&](const std::vector<at::Tensor>& parameters) {
      return std::make_unique<ZeroRedundancyOptimizer>(parameters, group, optimizer_of<torch::optim::AdamW>(options));
    });
    for (std::size_t i = 0; i < whole.size(); ++i) {
      expect(same_here()(sharded[i], whole[i]), "parameter " + std::to_string(i) + " is not that of DDP");
    }
  }
}

}  // namespace

std::map<std::string, Scenario> scaled_scenarios() { return {{"scaled_training", scaled_training}}; }

}  // namespace taas::test
