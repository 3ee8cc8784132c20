#include "taas/adadelta.hpp"

#include <torch/optim/serialize.h>
#include <torch/serialize/archive.h>
#include <torch/utils.h>

#include <string>

#include "taas/error.hpp"

namespace taas {
namespace {

void check(bool good, const char* name, double value) {
  if (!good) throw InvalidArgument("Adadelta cannot work with " + std::string(name) + " " + std::to_string(value));
}

/// torch's helper macros call torch::optim::serialize, which has no overload for a double: these are the same by name.
void write(torch::serialize::OutputArchive& archive, const char* key, double value) {
  archive.write(key, c10::IValue(value));
}

double read(torch::serialize::InputArchive& archive, const char* key) {
  c10::IValue value;
  archive.read(key, value);
  return value.toDouble();
}

void update(torch::Tensor& parameter, AdadeltaParamState& state, const AdadeltaOptions& options) {
  auto grad = parameter.grad();
  if (options.weight_decay() != 0) grad = grad.add(parameter, options.weight_decay());
  auto& square_avg = state.square_avg();
  auto& acc_delta = state.acc_delta();
  state.step(state.step() + 1);
  square_avg.mul_(options.rho()).addcmul_(grad, grad, 1 - options.rho());
  auto std = square_avg.add(options.eps()).sqrt_();
  auto delta = acc_delta.add(options.eps()).sqrt_().div_(std).mul_(grad);
  acc_delta.mul_(options.rho()).addcmul_(delta, delta, 1 - options.rho());
  parameter.add_(delta, -options.lr());
}

AdadeltaParamState fresh_state(const torch::Tensor& parameter) {
  AdadeltaParamState state;
  state.square_avg(torch::zeros_like(parameter, at::MemoryFormat::Preserve));
  state.acc_delta(torch::zeros_like(parameter, at::MemoryFormat::Preserve));
  return state;
}

}  // namespace

void AdadeltaOptions::serialize(torch::serialize::OutputArchive& archive) const {
  write(archive, "lr", lr());
  write(archive, "rho", rho());
  write(archive, "eps", eps());
  write(archive, "weight_decay", weight_decay());
}

void AdadeltaOptions::serialize(torch::serialize::InputArchive& archive) {
  lr(read(archive, "lr"));
  rho(read(archive, "rho"));
  eps(read(archive, "eps"));
  weight_decay(read(archive, "weight_decay"));
}

void AdadeltaParamState::serialize(torch::serialize::OutputArchive& archive) const {
  archive.write("step", c10::IValue(step()));
  archive.write("square_avg", square_avg());
  archive.write("acc_delta", acc_delta());
}

void AdadeltaParamState::serialize(torch::serialize::InputArchive& archive) {
  c10::IValue steps;
  archive.read("step", steps);
  step(steps.toInt());
  archive.read("square_avg", square_avg());
  archive.read("acc_delta", acc_delta());
}

Adadelta::Adadelta(const std::vector<torch::optim::OptimizerParamGroup>& groups, const AdadeltaOptions& defaults)
    : Optimizer(groups, std::make_unique<AdadeltaOptions>(defaults)) {
  check(defaults.lr() >= 0, "lr", defaults.lr());
  check(defaults.rho() >= 0 && defaults.rho() <= 1, "rho", defaults.rho());
  check(defaults.eps() >= 0, "eps", defaults.eps());
  check(defaults.weight_decay() >= 0, "weight_decay", defaults.weight_decay());
}

torch::Tensor Adadelta::step(LossClosure closure) {
  torch::Tensor loss;
  if (closure) loss = closure();  // with gradients on, as the caller left them
  torch::NoGradGuard no_grad;
  for (auto& group : param_groups_)
    for (auto& parameter : group.params()) {
      if (!parameter.grad().defined()) continue;
      auto& slot = state_[parameter.unsafeGetTensorImpl()];
      if (!slot) slot = std::make_unique<AdadeltaParamState>(fresh_state(parameter));
      update(parameter, static_cast<AdadeltaParamState&>(*slot), static_cast<AdadeltaOptions&>(group.options()));
    }
  return loss;
}

void Adadelta::save(torch::serialize::OutputArchive& archive) const {
  torch::optim::serialize<AdadeltaParamState, AdadeltaOptions>(archive, *this);
}

void Adadelta::load(torch::serialize::InputArchive& archive) {
  torch::optim::serialize<AdadeltaParamState, AdadeltaOptions>(archive, *this);
}

}  // namespace taas
