#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <unistd.h>

#include <filesystem>

#include "../rank_scenarios.hpp"
#include "taas/checkpoint.hpp"
#include "taas/distributed_data_parallel.hpp"
#include "taas/optimizers.hpp"
#include "taas/process_group.hpp"

namespace taas::test {
namespace {

namespace nn = torch::nn;

constexpr int kStepsInEachWorld = 3;

/// Known to all ranks of one test, whose parent is the same.
std::string path_of_worlds() {
  return (std::filesystem::temp_directory_path() / ("taas-worlds-" + std::to_string(::getppid()) + ".pt")).string();
}

nn::Sequential make_world_network() {
  at::manual_seed(4);
  return nn::Sequential(nn::Linear(5, 7), nn::Linear(7, 2));
}

struct WorldModel {
  nn::Sequential network = make_world_network();
  Adam optimizer{network->parameters(), torch::optim::AdamOptions(0.01)};

  /// A loss that is the same in every world: that of rank 0 alone, in the average over a power of two of them.
  void step(DistributedDataParallel<nn::SequentialImpl>* parallel, const ProcessGroup& group, int number) {
    const auto batch = at::linspace(-1, 1 + number, 30).view({6, 5});
    optimizer.zero_grad();
    const auto output = parallel ? (*parallel)(batch) : network->forward(batch);
    const double share = !parallel ? 1 : group.rank() == 0 ? group.world_size() : 0;
    (output.square().mean() * share).backward();
    optimizer.step();
  }
};

void expect_equal_to(const WorldModel& expected, const WorldModel& model, const char* when) {
  const auto theirs = module_state(*expected.network), ours = module_state(*model.network);
  for (const auto& [name, tensor] : theirs) expect(at::equal(tensor, ours.at(name)), name + " differs " + when);
  for (const auto& parameter : expected.network->parameters()) {
    expect(expected.optimizer.state().count(parameter.unsafeGetTensorImpl()) == 1, "the optimizer has had no step");
  }
  const auto states = optimizer_state(expected.optimizer).toGenericDict().at("state").toGenericDict();
  const auto own = optimizer_state(model.optimizer).toGenericDict().at("state").toGenericDict();
  for (const auto& entry : states) {
    const auto mine = own.at(entry.key()).toGenericDict();
    for (const auto* name : {"exp_avg", "exp_avg_sq"}) {
      const auto wanted = entry.value().toGenericDict().at(name).toTensor();
      expect(at::equal(wanted, mine.at(name).toTensor()), std::string(name) + " differs " + when);
    }
  }
}

/// Goes on where the last world was, and has the state of one process that made all the steps.
void train_in_world(int steps_before) {
  auto group = init({.backend = Backend::kGloo});
  WorldModel straight, model;
  for (int step = 0; step < steps_before; ++step) straight.step(nullptr, group, step);
  const auto path = path_of_worlds();
  if (steps_before > 0) {
    auto checkpoint = load_checkpoint(path);
    expect(checkpoint.epoch == steps_before, "another checkpoint");
    load_module_state(*model.network, checkpoint.model);
    load_optimizer_state(model.optimizer, std::move(checkpoint.optimizer));
    expect_equal_to(straight, model, "after loading");
  }
  DistributedDataParallel parallel(model.network, group);
  for (int step = steps_before; step < steps_before + kStepsInEachWorld; ++step) {
    straight.step(nullptr, group, step);
    model.step(&parallel, group, step);
  }
  expect_equal_to(straight, model, "after training");
  if (group.rank() != 0) return;
  save_checkpoint(path, {.epoch = steps_before + kStepsInEachWorld,
                         .model = module_state(*model.network, StateTensors::kShared),
                         .optimizer = optimizer_state(model.optimizer, StateTensors::kShared)});
}

}  // namespace

std::map<std::string, Scenario> checkpoint_scenarios() {
  return {{"first_world", [] { train_in_world(0); }},
          {"second_world", [] { train_in_world(kStepsInEachWorld); }},
          {"third_world", [] { train_in_world(2 * kStepsInEachWorld); }},
          {"forget_worlds", [] { std::filesystem::remove(path_of_worlds()); }}};
}

}  // namespace taas::test
