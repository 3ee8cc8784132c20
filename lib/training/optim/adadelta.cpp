#include "taas/adadelta.hpp"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_sqrt.h>
#include <torch/optim/serialize.h>
#include <torch/serialize/archive.h>

#include <string>

#include "taas/error.hpp"
#include "training/optim/optimizer_step.hpp"

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

/// `rate` is undefined where the one of the options is meant.
void update_all(const ParameterLists<AdadeltaParamState>& lists, const at::Tensor& rate, const AdadeltaOptions& options,
                const OptimizerKernels& kernels) {
  auto grads = lists.grads;
  std::vector<at::Tensor> squares, updates;
  count_on_host(lists);
  for (auto* state : lists.states) {
    squares.push_back(state->square_avg());
    updates.push_back(state->acc_delta());
  }
  if (options.weight_decay() != 0) grads = at::_foreach_add(grads, lists.parameters, options.weight_decay());
  multiply(squares, options.rho(), kernels);
  at::_foreach_addcmul_(squares, grads, grads, 1 - options.rho());
  auto deviations = at::_foreach_add(squares, options.eps());
  at::_foreach_sqrt_(deviations);
  auto deltas = at::_foreach_add(updates, options.eps());
  at::_foreach_sqrt_(deltas);
  at::_foreach_div_(deltas, deviations);
  at::_foreach_mul_(deltas, grads);
  multiply(updates, options.rho(), kernels);
  at::_foreach_addcmul_(updates, deltas, deltas, 1 - options.rho());
  if (rate.defined()) {
    at::_foreach_mul_(deltas, rate.neg());
    at::_foreach_add_(lists.parameters, deltas);
  } else {
    at::_foreach_add_(lists.parameters, deltas, -options.lr());
  }
}

std::vector<at::Tensor> kept_by_adadelta(const AdadeltaParamState& state) {
  return {state.square_avg(), state.acc_delta()};
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

Adadelta::Adadelta(const std::vector<torch::optim::OptimizerParamGroup>& groups, const AdadeltaOptions& defaults,
                   const OptimizerKernels& kernels)
    : Optimizer(groups, std::make_unique<AdadeltaOptions>(defaults)), RecordableOptimizer(kernels) {
  check(defaults.lr() >= 0, "lr", defaults.lr());
  check(defaults.rho() >= 0 && defaults.rho() <= 1, "rho", defaults.rho());
  check(defaults.eps() >= 0, "eps", defaults.eps());
  check(defaults.weight_decay() >= 0, "weight_decay", defaults.weight_decay());
  if (kernels.fused) throw InvalidArgument("Adadelta cannot be fused: torch has no kernel for it");
}

torch::Tensor Adadelta::step(LossClosure closure) {
  return step_lists<AdadeltaOptions, AdadeltaParamState>(
      *this, "Adadelta", *mirror_, closure, fresh_state, kept_by_adadelta,
      [&](const auto& lists, const at::Tensor& rate, const auto& options) {
        update_all(lists, rate, options, kernels());
      });
}

void Adadelta::before_recording() { refresh_mirror<AdadeltaParamState>(*this, *mirror_); }
void Adadelta::before_replay() {
  before_recording();
  count_replay<AdadeltaParamState>(*this, *mirror_, /*mirrored=*/false);
}
bool Adadelta::still_recorded() { return is_still_recorded<AdadeltaParamState>(*this, *mirror_, kept_by_adadelta); }

void Adadelta::save(torch::serialize::OutputArchive& archive) const {
  torch::optim::serialize<AdadeltaParamState, AdadeltaOptions>(archive, *this);
}

void Adadelta::load(torch::serialize::InputArchive& archive) {
  torch::optim::serialize<AdadeltaParamState, AdadeltaOptions>(archive, *this);
}

}  // namespace taas
