// Shards that are written by 2 ranks, read and written by 8, and read by 4: with the state of each that was
// consolidated.
#include <ATen/ATen.h>

#include <functional>

#include "rank_scenarios.hpp"
#include "shard_file_models.hpp"
#include "taas/collectives.hpp"
#include "taas/distributed_data_parallel.hpp"
#include "zero/zero_network.hpp"

namespace taas::test {
namespace {

namespace fs = std::filesystem;
using torch::optim::AdamOptions;
using torch::optim::AdamWOptions;
using torch::optim::SGDOptions;

constexpr double kRateAfterSteps = 0.0625;

/// What one rank of a world does with one kind of optimizer.
struct ShardWorld {
  ProcessGroup group;
  int steps_before = 0;
  int stage = 2;

  template <class Options>
  void run(const std::string& name, const Options& defaults, bool fused) {
    const auto folder = shard_files_folder(::getppid());
    const auto directory = (folder / name).string(), whole = (folder / (name + ".pt")).string();
    auto network = sharded_net();
    ZeroOptimizer optimizer(network->parameters(), group, defaults, {.stage = stage, .fused = fused});
    if (steps_before > 0) go_on(name, network, optimizer, directory, load_checkpoint(whole));
    train(network, optimizer);
    optimizer.param_groups()[0].options().set_lr(kRateAfterSteps);
    const auto state = optimizer.consolidated_state();
    optimizer.save_shards(directory, {.epoch = steps_before + 3, .model = module_state(*network)});
    const auto file = "shard-" + std::to_string(group.rank()) + "-of-" + std::to_string(group.world_size()) + ".pt";
    expect_share(name, directory, file, optimizer.state_bytes());
    if (group.rank() == 0) save_checkpoint(whole, {.model = module_state(*network), .optimizer = state});
  }

 private:
  void go_on(const std::string& name, torch::nn::Sequential& network, ZeroOptimizer& optimizer,
             const std::string& directory, const Checkpoint& expected) {
    const auto rest = optimizer.load_shards(directory);
    expect(rest.epoch == steps_before && rest.optimizer.isNone(), name + ": another epoch");
    load_module_state(*network, rest.model);
    const auto own = module_state(*network);
    for (const auto& [tensor, value] : expected.model) expect(are_equal(value, own.at(tensor)), name + ": " + tensor);
    expect(optimizer.param_groups()[0].options().get_lr() == kRateAfterSteps, name + ": the rate");
    const auto state = optimizer.consolidated_state();
    if (group.rank() == 0) expect(same_values(expected.optimizer, state), name + ": the state differs");
    barrier(group);  // rank 0 is about to write what another rank may still read
  }

  void train(torch::nn::Sequential& network, ZeroOptimizer& optimizer) {
    std::optional<DistributedDataParallel<torch::nn::SequentialImpl>> model;
    if (stage == 1) model.emplace(network, group);
    for (int step = steps_before; step < steps_before + 3; ++step) {
      if (!model) {
        sharded_net_step(network, optimizer, step, group);
        continue;
      }
      const auto batch = at::linspace(-1, 1 + step, 30, here()).view({6, 5});
      optimizer.zero_grad();
      ((*model)(batch).square().mean() * (group.rank() == 0 ? group.world_size() : 0)).backward();
      optimizer.step();
    }
  }

  /// The file of this rank has its own state and little else, and there is one set of files.
  void expect_share(const std::string& name, const std::string& directory, const std::string& file,
                    std::size_t state_bytes) {
    constexpr std::size_t kDescription = 8192;
    std::size_t found = 0, folders = 0;
    for (const auto& entry : fs::directory_iterator(directory)) {
      if (!entry.is_directory()) continue;
      ++folders;
      found = fs::file_size(entry.path() / file);
    }
    expect(folders == 1, name + ": " + std::to_string(folders) + " sets of files");
    expect(found >= state_bytes && found <= state_bytes + kDescription,
           name + ": " + std::to_string(found) + " bytes for a state of " + std::to_string(state_bytes));
  }
};

void train_in_shard_world(int steps_before, int stage) {
  at::set_num_threads(1);
  ShardWorld world{join_as_asked(), steps_before, stage};
  world.run("sgd", SGDOptions(0.05).momentum(0.9), false);
  world.run("adam", AdamOptions(1e-2), false);
  world.run("adamw", AdamWOptions(1e-2).amsgrad(true), false);
  world.run("fused-sgd", SGDOptions(0.05).momentum(0.9), true);
  world.run("fused-adam", AdamOptions(1e-2), true);
  world.run("fused-adamw", AdamWOptions(1e-2).weight_decay(0.1), true);
}

}  // namespace

std::map<std::string, Scenario> shard_world_scenarios() {
  return {{"first_shard_world", [] { train_in_shard_world(0, 2); }},
          {"second_shard_world", [] { train_in_shard_world(3, 1); }},
          {"third_shard_world", [] { train_in_shard_world(6, 2); }}};
}

}  // namespace taas::test
