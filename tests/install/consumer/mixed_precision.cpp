// Mixed precision: the forward pass in bfloat16, a scaled loss, clipping, and a schedule with a warm-up that goes on as
// a cosine. One step has an infinite loss on one rank, and is left out on all.
#include <torch/torch.h>

#include <taas/taas.hpp>

void require(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

constexpr int kWarmUp = 5, kSteps = 30, kBadStep = 12;
constexpr double kRate = 0.1, kMaxNorm = 1.0;

// The rate that the schedule is to have in a step.
double expected_rate(int step) {
  if (step < kWarmUp) return kRate * (0.1 + 0.9 * step / kWarmUp);
  return kRate * (1 + std::cos(M_PI * (step - kWarmUp) / (kSteps - kWarmUp))) / 2;
}

int main() {
  const auto group = taas::init();
  torch::manual_seed(4);
  torch::nn::Sequential network(torch::nn::Linear(16, 32), torch::nn::Tanh(), torch::nn::Linear(32, 1));
  taas::DistributedDataParallel model(network, group);
  taas::SGD optimizer(network->parameters(), torch::optim::SGDOptions(kRate).momentum(0.5));
  taas::LRScheduler schedule(optimizer, taas::SequentialLR{{taas::LinearLR{.start_factor = 0.1, .total_iters = kWarmUp},
                                                            taas::CosineAnnealingLR{.T_max = kSteps - kWarmUp}},
                                                           {kWarmUp}});
  taas::GradScaler scaler({.init_scale = 1024});

  std::vector<double> losses;
  int left_out = 0;
  for (int step = 0; step < kSteps; ++step) {
    require(std::abs(schedule.last_lr()[0] - expected_rate(step)) < 1e-9,
            "the rate of step " + std::to_string(step) + " is " + std::to_string(schedule.last_lr()[0]));
    torch::manual_seed(1000 * (group.rank() + 1) + step);
    const auto inputs = torch::randn({64, 16});
    const auto targets = inputs.mean(1, true) * 3;

    model.zero_grad();
    at::Tensor loss;
    {
      taas::Autocast autocast(group.device().type(), {.dtype = at::kBFloat16});
      const auto outputs = model(inputs);
      require(outputs.scalar_type() == at::kBFloat16, "the forward pass was not in bfloat16");
      loss = torch::mse_loss(outputs.to(at::kFloat), targets);
    }
    if (step == kBadStep && group.rank() == group.world_size() - 1) loss = loss * INFINITY;
    model.backward(scaler.scale(loss));
    scaler.unscale_(optimizer);
    taas::clip_grad_norm_(network->parameters(), kMaxNorm);
    const bool stepped = scaler.step(optimizer);
    scaler.update();
    schedule.step();

    require(stepped == (step != kBadStep), "the wrong step was left out: " + std::to_string(step));
    if (!stepped) {
      ++left_out;
      continue;
    }
    std::vector<at::Tensor> gradients;
    for (const auto& parameter : network->parameters()) gradients.push_back(parameter.grad());
    const auto norm = taas::get_total_norm(gradients).item<double>();
    require(norm <= kMaxNorm * 1.001, "the norm after clipping is " + std::to_string(norm));
    losses.push_back(loss.item<double>());
  }
  require(left_out == 1 && scaler.get_scale() == 512, "the scale is " + std::to_string(scaler.get_scale()));
  require(losses.back() < losses.front() / 2, "the loss is still " + std::to_string(losses.back()));
  for (const auto& parameter : network->parameters()) {
    require(parameter.scalar_type() == at::kFloat, "a parameter is no longer float32");
    auto of_rank_0 = parameter.detach().clone();
    taas::broadcast(group, of_rank_0);
    require(parameter.equal(of_rank_0), "ranks have different parameters");
  }
  if (group.rank() == 0) {
    std::cout << "ok mixed_precision: loss " << losses.front() << " to " << losses.back() << ", scale "
              << scaler.get_scale() << std::endl;
  }
}
