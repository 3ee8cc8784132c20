// Ranks with different numbers of batches train one model in a join scope: who is through stands in with zeros, and all
// end with the same parameters.
#include <torch/torch.h>

#include <taas/taas.hpp>

void require(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

int batches_of(int rank) { return 2 + 3 * rank; }

std::pair<at::Tensor, at::Tensor> make_batch(int rank, int step) {
  torch::manual_seed(1000 * (rank + 1) + step);
  return {torch::randn({4, 5}), torch::randn({4, 2})};
}

int main() {
  const auto group = taas::init();
  torch::manual_seed(1);
  torch::nn::Linear network(5, 2), reference(5, 2);
  taas::load_module_state(*reference, taas::module_state(*network));

  taas::DistributedDataParallel model(network, group);
  taas::SGD optimizer(network->parameters(), torch::optim::SGDOptions(0.05));
  int steps = 0;
  taas::join({model}, [&] {
    for (int step = 0; step < batches_of(group.rank()); ++step, ++steps) {
      const auto [inputs, targets] = make_batch(group.rank(), step);
      model.zero_grad();
      model.backward(torch::mse_loss(model(inputs), targets));
      optimizer.step();
    }
  });
  require(steps == batches_of(group.rank()), "the scope has left out batches");

  // The same in one process: what has no input adds nothing, and all is divided by the world size.
  taas::SGD reference_optimizer(reference->parameters(), torch::optim::SGDOptions(0.05));
  for (int step = 0; step < batches_of(group.world_size() - 1); ++step) {
    reference_optimizer.zero_grad();
    for (int rank = 0; rank < group.world_size(); ++rank) {
      if (step >= batches_of(rank)) continue;
      const auto [inputs, targets] = make_batch(rank, step);
      (torch::mse_loss(reference(inputs), targets) / group.world_size()).backward();
    }
    reference_optimizer.step();
  }
  require(at::allclose(network->weight, reference->weight), "the weight differs from that of one process");
  require(at::allclose(network->bias, reference->bias), "the bias differs from that of one process");

  auto of_rank_0 = network->weight.detach().clone();
  taas::broadcast(group, of_rank_0);
  require(network->weight.equal(of_rank_0), "the ranks have different weights");

  // Where an uneven number is a mistake, all ranks hear of it.
  std::string error;
  try {
    taas::join({model},
               [&] {
                 for (int step = 0; step < batches_of(group.rank()); ++step) {
                   const auto [inputs, targets] = make_batch(group.rank(), step);
                   model.zero_grad();
                   model.backward(torch::mse_loss(model(inputs), targets));
                 }
               },
               {.throw_on_early_termination = true});
  } catch (const taas::Exception& exception) {
    error = exception.what();
  }
  require(group.world_size() == 1 || !error.empty(), "nothing was thrown where a rank was through early");

  if (group.rank() == 0) {
    std::cout << "ok uneven_inputs: " << batches_of(0) << " to " << batches_of(group.world_size() - 1)
              << " batches; then: " << error << std::endl;
  }
}
