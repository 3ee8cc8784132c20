#include <sys/resource.h>

#include <filesystem>
#include <iostream>
#include <stdexcept>

#include "peer_tasks.hpp"
#include "taas/checkpoint.hpp"
#include "taas/error.hpp"
#include "taas/optimizers.hpp"
#include "trained_model.hpp"

namespace taas::test {
namespace {

/// The state after three steps that the Python script makes as well.
struct TrainedByAdadelta {
  TrainedModel base;
  Adadelta optimizer{base.model->parameters(), AdadeltaOptions(0.7).weight_decay(0.01)};

  void step(int number) {
    optimizer.zero_grad();
    base.model->forward(TrainedModel::batch(number)).square().sum().backward();
    optimizer.step();
  }
};

void write_checkpoint(const std::vector<std::string>& arguments) {
  TrainedByAdadelta trained;
  trained.base.start();
  for (int number = 0; number < 3; ++number) trained.step(number);
  save_checkpoint(arguments.at(0), {.epoch = 3,
                                    .model = module_state(*trained.base.model),
                                    .optimizer = optimizer_state(trained.optimizer),
                                    .extra = {{"note", "from C++"},
                                              {"numbers", torch::arange(3)},
                                              {"whole", c10::List<std::int64_t>{1, 2, 3}},
                                              {"broken", c10::List<double>{0.5, 1.5}}}});
}

/// Prints what is in a file, or why it cannot be read.
void describe(const std::vector<std::string>& arguments) {
  try {
    const auto checkpoint = load_checkpoint(arguments.at(0));
    std::cout << "epoch " << checkpoint.epoch << ", model";
    for (const auto& [name, tensor] : checkpoint.model) std::cout << ' ' << name << ' ' << tensor.device();
    std::cout << ", " << (checkpoint.optimizer.isNone() ? "no optimizer" : "an optimizer") << '\n';
  } catch (const Exception& error) {
    std::cout << error.what() << '\n';
  }
}

long peak_kibibytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

/// Reads a file, and writes it again. Prints the peak of this process' memory before, in between and after, in KiB.
void copy(const std::vector<std::string>& arguments) {
  const auto before = peak_kibibytes();
  const auto checkpoint = load_checkpoint(arguments.at(0));
  const auto loaded = peak_kibibytes();
  save_checkpoint(arguments.at(1), checkpoint);
  std::cout << before << ' ' << loaded << ' ' << peak_kibibytes() << '\n';
}

/// Goes on from what Python wrote, for one step more.
void resume_checkpoint(const std::vector<std::string>& arguments) {
  auto checkpoint = load_checkpoint(arguments.at(0));
  TrainedByAdadelta trained;
  load_module_state(*trained.base.model, checkpoint.model);
  load_optimizer_state(trained.optimizer, checkpoint.optimizer);
  trained.step(static_cast<int>(checkpoint.epoch));
  checkpoint.epoch += 1;
  checkpoint.model = module_state(*trained.base.model);
  checkpoint.optimizer = optimizer_state(trained.optimizer);
  save_checkpoint(arguments.at(1), checkpoint);
}

/// Checks the checkpoint that is there and saves later ones until it is killed; says the epoch of each. All tensors of
/// one have the epoch as their value.
void save_for_ever(const std::vector<std::string>& arguments) {
  const auto& path = arguments.at(0);
  Checkpoint checkpoint;
  if (std::filesystem::exists(path)) checkpoint = load_checkpoint(path);
  for (const auto& [name, tensor] : checkpoint.model) {
    if (!at::equal(tensor, at::full_like(tensor, checkpoint.epoch)))
      throw std::logic_error(name + " is of another save");
  }
  std::cout << checkpoint.epoch << std::endl;
  for (;;) {
    ++checkpoint.epoch;
    for (int i = 0; i < 8; ++i)
      checkpoint.model[std::to_string(i)] = at::full({1 << 18}, static_cast<double>(checkpoint.epoch));
    save_checkpoint(path, checkpoint);
    std::cout << checkpoint.epoch << std::endl;
  }
}

}  // namespace

PeerTasks checkpoint_peer_tasks() {
  return {{"write", {"PATH", write_checkpoint}},
          {"resume", {"FROM TO", resume_checkpoint}},
          {"describe", {"PATH", describe}},
          {"copy", {"FROM TO", copy}},
          {"save-for-ever", {"PATH", save_for_ever}}};
}

}  // namespace taas::test
