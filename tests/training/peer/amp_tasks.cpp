#include <torch/optim/sgd.h>

#include <cmath>
#include <vector>

#include "peer_tasks.hpp"
#include "taas/amp.hpp"
#include "taas/checkpoint.hpp"
#include "taas/clip_grad.hpp"
#include "trained_model.hpp"

namespace taas::test {
namespace {

/// 24 steps with a scale that is much too large at first, and with losses that are infinite now and then. Every third
/// step clips. Goes on from a state in the middle.
void scale_gradients(const std::vector<std::string>& arguments) {
  TrainedModel trained;
  trained.start();
  torch::optim::SGD optimizer(trained.model->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
  GradScaler scaler({.init_scale = 0x1p125, .growth_interval = 3});
  std::vector<double> scales;
  std::vector<std::int64_t> trackers;
  for (int step = 0; step < 24; ++step) {
    at::Tensor loss;
    optimizer.zero_grad();
    {
      const Autocast autocast(at::kCPU, {.dtype = at::kBFloat16});
      loss = trained.model->forward(TrainedModel::batch(step)).square().sum();
    }
    if (step % 7 == 5) loss = loss * INFINITY;
    scaler.scale(loss).backward();
    if (step % 3 == 0) {
      scaler.unscale_(optimizer);
      clip_grad_norm_(trained.model->parameters(), 0.5);
    }
    scaler.step(optimizer);
    scaler.update();
    scales.push_back(scaler.get_scale());
    trackers.push_back(scaler.growth_tracker());
    if (step == 11) {
      const auto state = scaler.state();
      scaler = GradScaler();
      scaler.load_state(state);
    }
  }
  save_checkpoint(arguments.at(0), {.model = module_state(*trained.model),
                                    .optimizer = optimizer_state(optimizer),
                                    .extra = {{"scales", torch::tensor(scales, at::kDouble)},
                                              {"trackers", torch::tensor(trackers)},
                                              {"state", scaler.state()}}});
}

}  // namespace

PeerTasks amp_peer_tasks() { return {{"grad-scaler", {"PATH", scale_gradients}}}; }

}  // namespace taas::test
