#include <torch/optim/adagrad.h>
#include <torch/optim/lbfgs.h>

#include <memory>
#include <stdexcept>

#include "peer_tasks.hpp"
#include "taas/checkpoint.hpp"
#include "taas/optimizers.hpp"
#include "trained_model.hpp"

namespace taas::test {
namespace {

/// One of the optimizers that optimizer_reference.py makes too.
std::unique_ptr<torch::optim::Optimizer> make_optimizer(const std::string& name, std::vector<at::Tensor> parameters) {
  using torch::optim::AdamOptions;
  using torch::optim::AdamWOptions;
  using torch::optim::RMSpropOptions;
  using torch::optim::SGDOptions;
  if (name == "sgd") return std::make_unique<SGD>(parameters, SGDOptions(0.001));
  if (name == "sgd momentum") {
    return std::make_unique<SGD>(parameters, SGDOptions(0.001).momentum(0.9).dampening(0.2).weight_decay(0.01));
  }
  if (name == "sgd nesterov") {
    return std::make_unique<SGD>(parameters, SGDOptions(0.001).momentum(0.9).nesterov(true));
  }
  if (name == "rmsprop") return std::make_unique<RMSprop>(parameters, RMSpropOptions(0.001));
  if (name == "rmsprop momentum") {
    return std::make_unique<RMSprop>(parameters, RMSpropOptions(0.001).alpha(0.9).momentum(0.9).weight_decay(0.01));
  }
  if (name == "rmsprop centered") {
    return std::make_unique<RMSprop>(parameters, RMSpropOptions(0.001).centered(true).weight_decay(0.01));
  }
  if (name == "rmsprop centered momentum") {
    return std::make_unique<RMSprop>(parameters,
                                     RMSpropOptions(0.001).alpha(0.9).eps(1e-4).momentum(0.8).centered(true));
  }
  if (name == "adagrad begun") {
    return std::make_unique<torch::optim::Adagrad>(
        parameters, torch::optim::AdagradOptions(0.01).initial_accumulator_value(0.3).eps(1e-3));
  }
  if (name == "adagrad") {
    return std::make_unique<torch::optim::Adagrad>(
        parameters, torch::optim::AdagradOptions(0.001).lr_decay(0.1).weight_decay(0.01));
  }
  if (name == "adam") return std::make_unique<Adam>(parameters, AdamOptions(0.01));
  if (name == "adam amsgrad") {
    return std::make_unique<Adam>(parameters, AdamOptions(0.01).amsgrad(true).weight_decay(0.1).betas({0.8, 0.95}));
  }
  if (name == "adamw") return std::make_unique<AdamW>(parameters, AdamWOptions(0.01).weight_decay(0.1));
  constexpr OptimizerKernels kFused{.fused = true}, kCapturable{.capturable = true}, kBoth{true, true};
  if (name == "sgd fused capturable") {
    return std::make_unique<SGD>(parameters, SGDOptions(0.001).momentum(0.9).nesterov(true), kBoth);
  }
  if (name == "adamw fused capturable") {
    return std::make_unique<AdamW>(parameters, AdamWOptions(0.01).weight_decay(0.1), kBoth);
  }
  if (name == "sgd fused") {
    return std::make_unique<SGD>(parameters, SGDOptions(0.001).momentum(0.9).weight_decay(0.01), kFused);
  }
  if (name == "adam fused") {
    return std::make_unique<Adam>(parameters, AdamOptions(0.01).amsgrad(true).weight_decay(0.1), kFused);
  }
  if (name == "adamw fused") {
    return std::make_unique<AdamW>(parameters, AdamWOptions(0.01).weight_decay(0.1), kFused);
  }
  if (name == "adam capturable") {
    return std::make_unique<Adam>(parameters, AdamOptions(0.01).amsgrad(true).weight_decay(0.1), kCapturable);
  }
  if (name == "adamw capturable") {
    return std::make_unique<AdamW>(parameters, AdamWOptions(0.01).weight_decay(0.1), kCapturable);
  }
  if (name == "rmsprop capturable") {
    return std::make_unique<RMSprop>(parameters, RMSpropOptions(0.001).centered(true).weight_decay(0.01), kCapturable);
  }
  if (name == "rmsprop momentum capturable") {
    return std::make_unique<RMSprop>(parameters, RMSpropOptions(0.001).momentum(0.9), kCapturable);
  }
  if (name == "adadelta capturable") {
    return std::make_unique<Adadelta>(parameters, AdadeltaOptions(0.7).weight_decay(0.01), kCapturable);
  }
  if (name == "adadelta") return std::make_unique<Adadelta>(parameters, AdadeltaOptions(0.7).weight_decay(0.01));
  if (name.starts_with("lbfgs")) return std::make_unique<torch::optim::LBFGS>(parameters);
  throw std::invalid_argument(name);
}

/// Goes on for one step from what Python wrote with such an optimizer, whose options are those in the file.
void adopt(const std::vector<std::string>& arguments) {
  const auto& name = arguments.at(0);
  auto checkpoint = load_checkpoint(arguments.at(1));
  TrainedModel trained;
  auto optimizer = make_optimizer(name, trained.model->parameters());
  load_module_state(*trained.model, checkpoint.model);
  load_optimizer_state(*optimizer, checkpoint.optimizer);
  optimizer->step([&] {
    optimizer->zero_grad();
    auto loss = trained.model->forward(TrainedModel::batch(0)).square().sum();
    loss.backward();
    return loss;
  });
  checkpoint.model = module_state(*trained.model);
  checkpoint.optimizer = optimizer_state(*optimizer);
  save_checkpoint(arguments.at(2), checkpoint);
}

/// The type of the model's numbers.
at::ScalarType type_called(const std::string& name) {
  if (name == "bfloat16") return at::kBFloat16;
  if (name == "float16") return at::kHalf;
  return at::kFloat;
}

/// Seven steps; in the first two one layer gets no gradient, except where Python's fused SGD would refuse to begin
/// then.
void optimize(const std::vector<std::string>& arguments) {
  const auto& name = arguments.at(0);
  const auto type = type_called(arguments.at(2));
  TrainedModel trained;
  trained.start(type);
  auto optimizer = make_optimizer(name, trained.model->parameters());
  for (int number = 0; number < 7; ++number) {
    auto input = TrainedModel::batch(number).to(type);
    optimizer->zero_grad();
    auto output = number < 2 && !name.starts_with("sgd fused")
                      ? trained.model->ptr<torch::nn::LinearImpl>(0)->forward(input)
                      : trained.model->forward(input);
    output.square().sum().backward();
    optimizer->step();
  }
  save_checkpoint(
      arguments.at(1),
      {.epoch = 0, .model = module_state(*trained.model), .optimizer = optimizer_state(*optimizer), .extra = {}});
}

}  // namespace

PeerTasks optimizer_peer_tasks() {
  return {{"adopt", {"NAME FROM TO", adopt}}, {"optimize", {"NAME PATH TYPE", optimize}}};
}

}  // namespace taas::test
