// Communication hooks: one of this program's own, which limits each rank's gradients before they are averaged, and
// PowerSGD, which sends small matrices in the place of a large one.
#include <torch/torch.h>

#include <taas/taas.hpp>

void require(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

constexpr double kLimit = 0.01;

// The average of gradients that were cut off at a limit, communicated in float64.
class LimitedHook : public taas::CommHook {
 public:
  explicit LimitedHook(taas::ProcessGroup group) : group_(std::move(group)) {}

  taas::GradientFuture run(taas::GradBucket& bucket) override {
    const auto limited = bucket.buffer().to(at::kDouble).clamp(-kLimit, kLimit);
    return taas::then(taas::all_reduce_average(group_, limited),
                      [](const at::Tensor& average) { return average.to(at::kFloat); });
  }

 private:
  taas::ProcessGroup group_;
};

std::pair<at::Tensor, at::Tensor> make_batch(int rank, int step) {
  torch::manual_seed(1000 * (rank + 1) + step);
  const auto inputs = torch::randn({64, 32});
  return {inputs, inputs.cumsum(1) / 4};
}

void check_own_hook(const taas::ProcessGroup& group) {
  torch::nn::Linear network(32, 32);
  taas::DistributedDataParallel model(network, group);
  model.register_comm_hook(std::make_shared<LimitedHook>(group));
  const auto [inputs, targets] = make_batch(group.rank(), 0);
  model.backward(torch::mse_loss(model(inputs), targets));
  auto expected = at::zeros_like(network->weight);
  for (int rank = 0; rank < group.world_size(); ++rank) {
    const auto [their_inputs, their_targets] = make_batch(rank, 0);
    const auto gradient =
        torch::autograd::grad({torch::mse_loss(network->forward(their_inputs), their_targets)}, {network->weight})[0];
    require(gradient.abs().max().item<double>() > kLimit, "no gradient was above the limit");
    expected += gradient.clamp(-kLimit, kLimit) / group.world_size();
  }
  require(at::allclose(network->weight.grad(), expected, 1e-4, 1e-7), "the hook's gradients are wrong");
}

// Returns by which factor the gradients were smaller.
double check_power_sgd(const taas::ProcessGroup& group) {
  torch::manual_seed(5);
  torch::nn::Linear network(32, 32);
  taas::DistributedDataParallel model(network, group);
  const auto state = std::make_shared<taas::PowerSGDState>(
      group, taas::PowerSGDOptions{.matrix_approximation_rank = 2, .start_powerSGD_iter = 2});
  model.register_comm_hook(taas::powerSGD_hook(state));
  taas::SGD optimizer(network->parameters(), torch::optim::SGDOptions(4));
  double first_loss = 0, last_loss = 0;
  for (int step = 0; step < 40; ++step) {
    const auto [inputs, targets] = make_batch(group.rank(), step);
    model.zero_grad();
    const auto loss = torch::mse_loss(model(inputs), targets);
    model.backward(loss);
    optimizer.step();
    (step == 0 ? first_loss : last_loss) = loss.item<double>();
  }
  require(last_loss < first_loss / 2, "with PowerSGD the loss is still " + std::to_string(last_loss));
  const double rate = state->compression_stats().compress_rate;
  require(rate > 2, "PowerSGD has sent gradients only " + std::to_string(rate) + " times smaller");
  return rate;
}

int main() {
  const auto group = taas::init();
  require(group.world_size() > 1, "no hook runs in a group of one process");
  check_own_hook(group);
  const double rate = check_power_sgd(group);
  if (group.rank() == 0) {
    std::cout << "ok custom_hook: limited gradients; PowerSGD sent " << rate << " times less" << std::endl;
  }
}
