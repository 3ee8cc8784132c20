// The C++ half of the tests that compare with Python: the scripts beside this file run it and look at what it did.
#include <sys/resource.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/rmsprop.h>

#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>

#include "taas/checkpoint.hpp"
#include "taas/error.hpp"
#include "taas/optimizers.hpp"
#include "taas/sampler.hpp"

namespace {

/// Each line of the input is "size world rank shuffle drop_last seed epoch"; answers with the indices, one line each.
int print_samples() {
  taas::DistributedSamplerOptions options;
  std::size_t size = 0;
  std::uint64_t epoch = 0;
  while (std::cin >> size >> options.num_replicas >> options.rank >> options.shuffle >> options.drop_last >>
         options.seed >> epoch) {
    taas::DistributedSampler sampler(size, options);
    sampler.set_epoch(epoch);
    sampler.reset();
    for (auto index : sampler.next(size + 1).value_or(std::vector<std::size_t>{})) std::cout << index << ' ';
    std::cout << '\n';
  }
  return 0;
}

/// The state after three steps that the Python script makes as well.
struct Trained {
  torch::nn::Sequential model{torch::nn::Linear(3, 4), torch::nn::BatchNorm1d(4), torch::nn::Linear(4, 2)};
  taas::Adadelta optimizer{model->parameters(), taas::AdadeltaOptions(0.7).weight_decay(0.01)};

  void start() {
    torch::NoGradGuard no_grad;
    for (auto& parameter : model->parameters())
      parameter.copy_(torch::linspace(-1, 1, parameter.numel()).view_as(parameter));
  }
  void step(int number) {
    auto input = torch::linspace(-1, 2 + number, 18).view({6, 3});
    optimizer.zero_grad();
    model->forward(input).square().sum().backward();
    optimizer.step();
  }
};

int write_checkpoint(const std::string& path) {
  Trained trained;
  trained.start();
  for (int number = 0; number < 3; ++number) trained.step(number);
  taas::save_checkpoint(path, {.epoch = 3,
                               .model = taas::module_state(*trained.model),
                               .optimizer = taas::optimizer_state(trained.optimizer),
                               .extra = {{"note", "from C++"},
                                         {"numbers", torch::arange(3)},
                                         {"whole", c10::List<std::int64_t>{1, 2, 3}},
                                         {"broken", c10::List<double>{0.5, 1.5}}}});
  return 0;
}

/// Prints what is in a file, or why it cannot be read.
int describe(const std::string& path) {
  try {
    const auto checkpoint = taas::load_checkpoint(path);
    std::cout << "epoch " << checkpoint.epoch << ", model";
    for (const auto& [name, tensor] : checkpoint.model) std::cout << ' ' << name << ' ' << tensor.device();
    std::cout << ", " << (checkpoint.optimizer.isNone() ? "no optimizer" : "an optimizer") << '\n';
  } catch (const taas::Exception& error) {
    std::cout << error.what() << '\n';
  }
  return 0;
}

long peak_kibibytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

/// Reads a file, and writes it again. Prints the peak of this process' memory before, in between and after, in KiB.
int copy(const std::string& from, const std::string& to) {
  const auto before = peak_kibibytes();
  const auto checkpoint = taas::load_checkpoint(from);
  const auto loaded = peak_kibibytes();
  taas::save_checkpoint(to, checkpoint);
  std::cout << before << ' ' << loaded << ' ' << peak_kibibytes() << '\n';
  return 0;
}

/// Goes on from what Python wrote, for one step more.
int resume_checkpoint(const std::string& from, const std::string& to) {
  auto checkpoint = taas::load_checkpoint(from);
  Trained trained;
  taas::load_module_state(*trained.model, checkpoint.model);
  taas::load_optimizer_state(trained.optimizer, checkpoint.optimizer);
  trained.step(static_cast<int>(checkpoint.epoch));
  checkpoint.epoch += 1;
  checkpoint.model = taas::module_state(*trained.model);
  checkpoint.optimizer = taas::optimizer_state(trained.optimizer);
  taas::save_checkpoint(to, checkpoint);
  return 0;
}

/// One of the optimizers that optimizer_reference.py makes too.
std::unique_ptr<torch::optim::Optimizer> make_optimizer(const std::string& name, std::vector<at::Tensor> parameters) {
  using torch::optim::AdamOptions;
  using torch::optim::AdamWOptions;
  using torch::optim::SGDOptions;
  if (name == "sgd") return std::make_unique<taas::SGD>(parameters, SGDOptions(0.001));
  if (name == "sgd momentum") {
    return std::make_unique<taas::SGD>(parameters, SGDOptions(0.001).momentum(0.9).dampening(0.2).weight_decay(0.01));
  }
  if (name == "sgd nesterov") {
    return std::make_unique<taas::SGD>(parameters, SGDOptions(0.001).momentum(0.9).nesterov(true));
  }
  if (name == "rmsprop") return std::make_unique<torch::optim::RMSprop>(parameters, 0.001);
  if (name == "adagrad") return std::make_unique<torch::optim::Adagrad>(parameters, 0.001);
  if (name == "adam") return std::make_unique<taas::Adam>(parameters, AdamOptions(0.01));
  if (name == "adam amsgrad") {
    return std::make_unique<taas::Adam>(parameters,
                                        AdamOptions(0.01).amsgrad(true).weight_decay(0.1).betas({0.8, 0.95}));
  }
  if (name == "adamw") return std::make_unique<taas::AdamW>(parameters, AdamWOptions(0.01).weight_decay(0.1));
  constexpr taas::OptimizerKernels kFused{.fused = true}, kCapturable{.capturable = true}, kBoth{true, true};
  if (name == "sgd fused capturable") {
    return std::make_unique<taas::SGD>(parameters, SGDOptions(0.001).momentum(0.9).nesterov(true), kBoth);
  }
  if (name == "adamw fused capturable") {
    return std::make_unique<taas::AdamW>(parameters, AdamWOptions(0.01).weight_decay(0.1), kBoth);
  }
  if (name == "sgd fused") {
    return std::make_unique<taas::SGD>(parameters, SGDOptions(0.001).momentum(0.9).weight_decay(0.01), kFused);
  }
  if (name == "adam fused") {
    return std::make_unique<taas::Adam>(parameters, AdamOptions(0.01).amsgrad(true).weight_decay(0.1), kFused);
  }
  if (name == "adamw fused") {
    return std::make_unique<taas::AdamW>(parameters, AdamWOptions(0.01).weight_decay(0.1), kFused);
  }
  if (name == "adam capturable") {
    return std::make_unique<taas::Adam>(parameters, AdamOptions(0.01).amsgrad(true).weight_decay(0.1), kCapturable);
  }
  if (name == "adamw capturable") {
    return std::make_unique<taas::AdamW>(parameters, AdamWOptions(0.01).weight_decay(0.1), kCapturable);
  }
  if (name == "adadelta capturable") {
    return std::make_unique<taas::Adadelta>(parameters, taas::AdadeltaOptions(0.7).weight_decay(0.01), kCapturable);
  }
  if (name == "adadelta")
    return std::make_unique<taas::Adadelta>(parameters, taas::AdadeltaOptions(0.7).weight_decay(0.01));
  throw std::invalid_argument(name);
}

/// Goes on for one step from what Python wrote with such an optimizer, whose options are those in the file.
int adopt(const std::string& name, const std::string& from, const std::string& to) {
  auto checkpoint = taas::load_checkpoint(from);
  Trained trained;
  auto optimizer = make_optimizer(name, trained.model->parameters());
  taas::load_module_state(*trained.model, checkpoint.model);
  taas::load_optimizer_state(*optimizer, checkpoint.optimizer);
  optimizer->zero_grad();
  trained.model->forward(torch::linspace(-1, 2, 18).view({6, 3})).square().sum().backward();
  optimizer->step();
  checkpoint.model = taas::module_state(*trained.model);
  checkpoint.optimizer = taas::optimizer_state(*optimizer);
  taas::save_checkpoint(to, checkpoint);
  return 0;
}

/// Seven steps; in the first two one layer gets no gradient, except where Python's fused SGD would refuse to begin
/// then.
int optimize(const std::string& name, const std::string& path) {
  Trained trained;
  trained.start();
  auto optimizer = make_optimizer(name, trained.model->parameters());
  for (int number = 0; number < 7; ++number) {
    auto input = torch::linspace(-1, 2 + number, 18).view({6, 3});
    optimizer->zero_grad();
    auto output = number < 2 && !name.starts_with("sgd fused")
                      ? trained.model->ptr<torch::nn::LinearImpl>(0)->forward(input)
                      : trained.model->forward(input);
    output.square().sum().backward();
    optimizer->step();
  }
  taas::save_checkpoint(path, {.epoch = 0,
                               .model = taas::module_state(*trained.model),
                               .optimizer = taas::optimizer_state(*optimizer),
                               .extra = {}});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string task = argc > 1 ? argv[1] : "";
  if (task == "samples") return print_samples();
  if (task == "write" && argc == 3) return write_checkpoint(argv[2]);
  if (task == "resume" && argc == 4) return resume_checkpoint(argv[2], argv[3]);
  if (task == "optimize" && argc == 4) return optimize(argv[2], argv[3]);
  if (task == "describe" && argc == 3) return describe(argv[2]);
  if (task == "copy" && argc == 4) return copy(argv[2], argv[3]);
  if (task == "adopt" && argc == 5) return adopt(argv[2], argv[3], argv[4]);
  std::cerr << "usage: python_peer samples | write PATH | resume FROM TO | optimize NAME PATH | describe PATH | copy "
               "FROM TO |"
               " adopt NAME FROM TO\n";
  return 2;
}
