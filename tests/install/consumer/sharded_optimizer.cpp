// ZeRO stage 2: each rank keeps its share of gradients and AdamW's state. The state is put together on rank 0, saved,
// and loaded by a second optimizer, which goes on to the same bits (2 ranks).
#include <torch/torch.h>

#include <taas/taas.hpp>

void require(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

torch::nn::Sequential make_network() {
  torch::manual_seed(3);
  return torch::nn::Sequential(torch::nn::Linear(8, 512), torch::nn::Tanh(), torch::nn::Linear(512, 1));
}

constexpr double kMaxNorm = 0.25;

// One step on made-up data of this rank; returns the norm of the gradients before clipping.
double train_step(torch::nn::Sequential& network, taas::ZeroOptimizer& optimizer, const taas::ProcessGroup& group,
                  int step) {
  torch::manual_seed(100 * step + group.rank());
  const auto inputs = torch::randn({16, 8});
  const auto targets = 5 * inputs.sum(1, true);
  optimizer.zero_grad();
  torch::mse_loss(network->forward(inputs), targets).backward();
  const double norm = optimizer.clip_grad_norm(kMaxNorm);
  const double clipped = taas::get_total_norm(group, optimizer.gradient_shards()).item<double>();
  require(std::abs(clipped - std::min(norm, kMaxNorm)) < 1e-4, "the clipped norm is " + std::to_string(clipped));
  optimizer.step();
  return norm;
}

int main() {
  const auto group = taas::init();
  const torch::optim::AdamWOptions options(1e-2);
  auto network = make_network();
  taas::ZeroOptimizer optimizer(network->parameters(), group, options, {.stage = 2});
  double norm = 0;
  for (int step = 0; step < 4; ++step) norm = train_step(network, optimizer, group, step);
  require(norm > kMaxNorm, "nothing was clipped");

  const char* folder = std::getenv("TAAS_OUTPUT_DIR");
  const auto path = std::string(folder ? folder : ".") + "/sharded_optimizer.pt";
  auto state = optimizer.consolidated_state();
  require(state.isNone() == (group.rank() != 0), "the whole state belongs on rank 0 alone");
  if (group.rank() == 0) {
    taas::save_checkpoint(path, {.epoch = 1, .model = taas::module_state(*network), .optimizer = state});
  }
  taas::barrier(group);

  const auto checkpoint = taas::load_checkpoint(path);
  auto second_network = make_network();
  taas::load_module_state(*second_network, checkpoint.model);
  taas::ZeroOptimizer second_optimizer(second_network->parameters(), group, options, {.stage = 2});
  second_optimizer.load_state(checkpoint.optimizer);
  for (int step = 4; step < 7; ++step) {
    train_step(network, optimizer, group, step);
    train_step(second_network, second_optimizer, group, step);
  }
  const auto parameters = network->parameters(), second_parameters = second_network->parameters();
  std::int64_t count = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    // Over more than two ranks the last bits may differ, as a sum depends on a gradient's place in its bucket.
    const auto difference = (parameters[i] - second_parameters[i]).abs().max().item<double>();
    require(difference <= (group.world_size() > 2 ? 1e-3 : 0), "parameters differ by " + std::to_string(difference));
    count += parameters[i].numel();
  }
  // AdamW has two float32 for each parameter.
  const auto share = double(optimizer.state_bytes()) / double(count * 8);
  require(share < 1.2 / group.world_size() + 0.05, "this rank keeps " + std::to_string(share) + " of the state");
  if (group.rank() == 0) {
    std::cout << "ok sharded_optimizer: rank 0 keeps " << share << " of the state" << std::endl;
  }
}
