#include "taas/adadelta.hpp"

#include <ATen/ATen.h>
#include <ATen/ScalarOps.h>
#include <torch/optim/serialize.h>
#include <torch/serialize/archive.h>

#include <memory>
#include <string>

#include "taas/error.hpp"
#include "training/checkpoint/optimizer_fields.hpp"

namespace taas {
namespace {

using torch::serialize::InputArchive;
using torch::serialize::OutputArchive;

void check(bool good, const char* name, double value) {
  if (!good) throw InvalidArgument("Adadelta cannot work with " + std::string(name) + " " + std::to_string(value));
}

struct ArchiveWriter {
  OutputArchive& archive;
  void operator()(const char* name, const auto& value) const { archive.write(name, c10::IValue(value)); }
};
struct ArchiveReader {
  InputArchive& archive;
  template <class Value>
  void operator()(const char* name, Value& place) const {
    c10::IValue value;
    archive.read(name, value);
    place = value.to<Value>();
  }
};

/// In place, as Python multiplies a tensor by a number: C++'s mul_(double) rounds the number to the tensor's type.
void multiply(const at::Tensor& tensor, double factor) { tensor.mul_(at::native::wrapped_scalar_tensor(factor)); }

/// As torch/optim/adadelta.py, _single_tensor_adadelta.
void update(const at::Tensor& parameter, at::Tensor grad, AdadeltaParamState& state, const AdadeltaOptions& options) {
  state.step(state.step() + 1);
  auto &square = state.square_avg(), &acc_delta = state.acc_delta();
  if (options.weight_decay() != 0) grad = grad.add(parameter, options.weight_decay());
  multiply(square, options.rho());
  square.addcmul_(grad, grad, 1 - options.rho());
  const auto deviation = square.add(options.eps()).sqrt_();
  const auto delta = acc_delta.add(options.eps()).sqrt_().div_(deviation).mul_(grad);
  multiply(acc_delta, options.rho());
  acc_delta.addcmul_(delta, delta, 1 - options.rho());
  parameter.add_(delta, -options.lr());
}

std::unique_ptr<AdadeltaParamState> fresh_state(const at::Tensor& parameter) {
  auto state = std::make_unique<AdadeltaParamState>();
  state->square_avg(at::zeros_like(parameter, at::MemoryFormat::Preserve));
  state->acc_delta(at::zeros_like(parameter, at::MemoryFormat::Preserve));
  return state;
}

}  // namespace

void AdadeltaOptions::serialize(OutputArchive& archive) const { each_field(*this, ArchiveWriter{archive}); }
void AdadeltaOptions::serialize(InputArchive& archive) { each_field(*this, ArchiveReader{archive}); }
void AdadeltaParamState::serialize(OutputArchive& archive) const { each_field(*this, ArchiveWriter{archive}); }
void AdadeltaParamState::serialize(InputArchive& archive) { each_field(*this, ArchiveReader{archive}); }

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
  const at::NoGradGuard no_grad;
  for (auto& group : param_groups()) {
    const auto& options = static_cast<const AdadeltaOptions&>(group.options());
    for (const auto& parameter : group.params()) {
      const auto& grad = parameter.grad();
      if (!grad.defined()) continue;
      if (grad.is_sparse()) throw InvalidArgument("Adadelta takes dense gradients only, and one is sparse");
      auto& state = state_[parameter.unsafeGetTensorImpl()];
      if (!state) state = fresh_state(parameter);
      update(parameter, grad, static_cast<AdadeltaParamState&>(*state), options);
    }
  }
  return loss;
}

void Adadelta::save(OutputArchive& archive) const {
  torch::optim::serialize<AdadeltaParamState, AdadeltaOptions>(archive, *this);
}

void Adadelta::load(InputArchive& archive) {
  torch::optim::serialize<AdadeltaParamState, AdadeltaOptions>(archive, *this);
}

}  // namespace taas
