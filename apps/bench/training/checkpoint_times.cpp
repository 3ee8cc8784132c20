// checkpoint_times save|load FILE MEBIBYTES: a third of them parameters, the rest Adam's state. Prints the seconds that
// it took, and by how many KiB the memory of this process grew meanwhile. The benchmark is checkpoint.py.
#include <sys/resource.h>
#include <torch/nn/module.h>
#include <torch/optim/adam.h>

#include <chrono>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>

#include "taas/checkpoint.hpp"

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kNumbers = 1 << 20;  // of each tensor: 4 MiB

struct Weights : torch::nn::Module {
  explicit Weights(int count) {
    for (int i = 0; i < count; ++i)
      register_parameter(std::to_string(i), torch::full({kNumbers}, static_cast<float>(i)));
  }
};

void give_state(torch::optim::Optimizer& optimizer) {
  for (const auto& parameter : optimizer.param_groups()[0].params()) {
    auto state = std::make_unique<torch::optim::AdamParamState>();
    state->step(1);
    state->exp_avg(parameter.detach() + 1);
    state->exp_avg_sq(parameter.detach() + 2);
    optimizer.state()[parameter.unsafeGetTensorImpl()] = std::move(state);
  }
}

long peak_kibibytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

long resident_kibibytes() {
  std::ifstream statm("/proc/self/statm");
  long all = 0, resident = 0;
  statm >> all >> resident;
  return resident * (4096 / 1024);
}

void save(const std::string& path, Weights& weights, torch::optim::Adam& optimizer) {
  taas::save_checkpoint(path, {.epoch = 1,
                               .model = taas::module_state(weights, taas::StateTensors::kShared),
                               .optimizer = taas::optimizer_state(optimizer, taas::StateTensors::kShared)});
}

void load(const std::string& path, Weights& weights, torch::optim::Adam& optimizer) {
  auto checkpoint = taas::load_checkpoint(path);
  taas::load_module_state(weights, checkpoint.model);
  taas::load_optimizer_state(optimizer, std::move(checkpoint.optimizer));
}

/// What was loaded is what was saved.
bool is_whole(const torch::optim::Adam& optimizer) {
  int number = 0;
  for (const auto& parameter : optimizer.param_groups()[0].params()) {
    const auto& state = optimizer.state().at(parameter.unsafeGetTensorImpl());
    const auto& moments = dynamic_cast<const torch::optim::AdamParamState&>(*state);
    const auto expected = static_cast<float>(number++);
    if (parameter[-1].item<float>() != expected || moments.exp_avg_sq()[-1].item<float>() != expected + 2) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::string task = argv[1], path = argv[2];
  Weights weights(std::stoi(argv[3]) / 12);
  torch::optim::Adam optimizer(weights.parameters(), torch::optim::AdamOptions(0.1));
  if (task == "save") {
    give_state(optimizer);
  } else {
    for (auto& parameter : weights.parameters()) parameter.detach().zero_();
  }
  const auto before = resident_kibibytes();
  const auto began = Clock::now();
  (task == "save" ? save : load)(path, weights, optimizer);
  const std::chrono::duration<double> took = Clock::now() - began;
  if (!is_whole(optimizer)) return 1;
  std::cout << took.count() << ' ' << peak_kibibytes() - before << '\n';
  return 0;
}
