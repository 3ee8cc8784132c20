// Groups of some ranks by new_group and split, and DistributedDataParallel over one of them: the ranks of one shard
// train one model together, the ranks of another shard another one. For 2, 4, 6, … ranks.
#include <torch/torch.h>

#include <taas/taas.hpp>
// Whatever a program includes of torch, it needs no headers of gloo, which come with neither.
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

void require(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

// What a replica of a shard trains with: [inputs, targets].
std::pair<at::Tensor, at::Tensor> make_batch(int replica, int shard, int step) {
  torch::manual_seed(10'000 + 100 * replica + 10 * shard + step);
  return {torch::randn({8, 3}), torch::randn({8, 1})};
}

int main() {
  const auto group = taas::init();
  const int size = group.world_size();
  require(size % 2 == 0, "this program is for an even number of ranks");

  // The two outer ranks, in turned order: rank 0 of the new group is the last one.
  const auto outer = taas::new_group(group, {size - 1, 0});
  const bool is_outer = group.rank() == 0 || group.rank() == size - 1;
  require(outer.has_value() == is_outer, "new_group gave a group to the wrong ranks");
  if (outer) {
    auto numbers = at::empty({2}, at::kLong);
    taas::all_gather(*outer, numbers, at::scalar_tensor(group.rank(), at::kLong));
    require(numbers.equal(torch::tensor({size - 1, 0}, at::kLong)), "the ranks of new_group have another order");
  }

  // Even and odd ranks, the highest first.
  const auto parity = taas::split(group, group.rank() % 2, -group.rank());
  require(parity->world_size() == size / 2, "split made a group of another size");
  require(parity->ranks().back() == group.rank() % 2, "split has not sorted by the keys");
  auto sum = at::scalar_tensor(group.rank(), at::kLong);
  taas::all_reduce(*parity, sum);
  const int expected_sum = (size / 2) * (size / 2 - 1) + (group.rank() % 2) * (size / 2);
  require(sum.item<std::int64_t>() == expected_sum, "the sum over half of the ranks is wrong");

  // A grid: two rows of ranks, each with a replica of all shards.
  const int shards = size / 2;
  const int shard = group.rank() % shards;
  const auto replicas_of_shard = *taas::split(group, shard, group.rank());
  const auto shards_of_replica = *taas::split(group, group.rank() / shards, group.rank());
  const int replicas = replicas_of_shard.world_size();
  require(replicas == 2 && shards_of_replica.world_size() == shards, "split made a grid of another form");
  torch::manual_seed(shard);
  torch::nn::Linear network(3, 1), reference(3, 1);
  taas::load_module_state(*reference, taas::module_state(*network));
  taas::DistributedDataParallel model(network, replicas_of_shard);
  torch::optim::SGD optimizer(network->parameters(), torch::optim::SGDOptions(0.1));
  torch::optim::SGD reference_optimizer(reference->parameters(), torch::optim::SGDOptions(0.1));
  for (int step = 0; step < 5; ++step) {
    const auto [inputs, targets] = make_batch(replicas_of_shard.rank(), shard, step);
    model.zero_grad();
    model.backward(torch::mse_loss(model(inputs), targets));
    optimizer.step();

    reference_optimizer.zero_grad();
    for (int replica = 0; replica < replicas; ++replica) {
      const auto [their_inputs, their_targets] = make_batch(replica, shard, step);
      (torch::mse_loss(reference(their_inputs), their_targets) / replicas).backward();
    }
    reference_optimizer.step();
  }
  require(at::allclose(network->weight, reference->weight), "the replicas of a shard have not trained together");

  auto weights = at::empty({shards, 1, 3});
  taas::all_gather(shards_of_replica, weights, network->weight.detach());
  for (int other = 0; other < shards; ++other) {
    require(weights[other].equal(network->weight) == (other == shard), "shards have not trained apart");
  }
  if (group.rank() == 0) {
    std::cout << "ok several_groups: " << size << " ranks, 2 replicas of " << shards << " shard(s)" << std::endl;
  }
}
