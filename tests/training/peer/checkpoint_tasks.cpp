#include <sys/resource.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <stdexcept>

#include "peer_tasks.hpp"
#include "taas/adadelta.hpp"
#include "taas/checkpoint.hpp"
#include "taas/error.hpp"
#include "trained_model.hpp"

namespace taas::test {
namespace {

void write_checkpoint(const std::vector<std::string>& arguments) {
  TrainedModel trained;
  trained.start();
  Adadelta optimizer(trained.model->parameters(), AdadeltaOptions(0.7).weight_decay(0.01));
  for (int number = 0; number < 3; ++number) trained.step(optimizer, number);
  save_checkpoint(arguments.at(0), {.epoch = 3,
                                    .model = module_state(*trained.model),
                                    .optimizer = optimizer_state(optimizer),
                                    .extra = {{"note", "from C++"},
                                              {"whole", c10::List<std::int64_t>{1, 2, 3}},
                                              {"broken", c10::List<double>{0.5, 1.5}}}});
}

/// With options that those of a checkpoint replace.
std::unique_ptr<torch::optim::Optimizer> make_optimizer(const std::string& kind,
                                                        const std::vector<at::Tensor>& parameters) {
  if (kind == "sgd") return std::make_unique<torch::optim::SGD>(parameters, 1.0);
  if (kind == "adam") return std::make_unique<torch::optim::Adam>(parameters, 1.0);
  if (kind == "adamw") return std::make_unique<torch::optim::AdamW>(parameters, 1.0);
  if (kind == "rmsprop") return std::make_unique<torch::optim::RMSprop>(parameters, 1.0);
  if (kind == "adagrad") return std::make_unique<torch::optim::Adagrad>(parameters, 1.0);
  if (kind == "adadelta") return std::make_unique<Adadelta>(parameters, 1.0);
  throw std::invalid_argument(kind);
}

/// Goes on for so many steps from a checkpoint, which has the types of the model and the options of the optimizer, too.
void train(const std::vector<std::string>& arguments) {
  auto checkpoint = load_checkpoint(arguments.at(1));
  TrainedModel trained;
  const auto type = checkpoint.model.at("0.weight").scalar_type();
  for (const auto& tensors : {trained.model->parameters(), trained.model->buffers()}) {
    for (const auto& tensor : tensors)
      if (tensor.is_floating_point()) tensor.set_data(tensor.to(type));
  }
  load_module_state(*trained.model, checkpoint.model);
  const auto optimizer = make_optimizer(arguments.at(0), trained.model->parameters());
  load_optimizer_state(*optimizer, checkpoint.optimizer);
  for (int steps = std::stoi(arguments.at(3)); steps > 0; --steps) {
    trained.step(*optimizer, static_cast<int>(checkpoint.epoch++));
  }
  checkpoint.model = module_state(*trained.model);
  checkpoint.optimizer = optimizer_state(*optimizer);
  save_checkpoint(arguments.at(2), checkpoint);
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
          {"train", {"OPTIMIZER FROM TO STEPS", train}},
          {"describe", {"PATH", describe}},
          {"copy", {"FROM TO", copy}},
          {"save-for-ever", {"PATH", save_for_ever}}};
}

}  // namespace taas::test
