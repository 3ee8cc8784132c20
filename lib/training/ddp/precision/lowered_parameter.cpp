#include "training/ddp/precision/lowered_parameter.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <utility>

namespace taas {

LoweredParameter::LoweredParameter(at::Tensor parameter, std::optional<at::ScalarType> type)
    : parameter_(std::move(parameter)),
      full_type_(parameter_.scalar_type()),
      type_(type.value_or(parameter_.scalar_type())) {}

LoweredParameter::~LoweredParameter() {
  if (!parameter_.defined()) return;  // moved from
  unwatch();
  raise();
}

void LoweredParameter::lower() {
  if (is_low() || !changes_type()) return;
  full_ = parameter_.detach();
  parameter_.set_data(full_.to(type_));
}

void LoweredParameter::raise() {
  if (!is_low()) return;
  parameter_.set_data(full_);
  full_.reset();
}

void LoweredParameter::cast_gradient(at::ScalarType type) {
  auto gradient = parameter_.grad();
  if (gradient.defined() && gradient.scalar_type() != type) gradient.set_data(gradient.detach().to(type));
}

void LoweredParameter::round_gradient(at::ScalarType type) {
  cast_gradient(type);
  raise_gradient();
}

void LoweredParameter::watch(std::function<void()> tell) {
  using torch::autograd::variable_list;
  auto accumulator = torch::autograd::impl::grad_accumulator(parameter_);
  if (accumulator.get() == accumulator_.get()) return;
  unwatch();
  hook_ = accumulator->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
      [tell = std::move(tell)](const variable_list& outputs, const variable_list&) {
        tell();
        return outputs;
      }));
  accumulator_ = std::move(accumulator);
}

void LoweredParameter::unwatch() {
  if (!accumulator_) return;
  accumulator_->del_post_hook(hook_);
  accumulator_.reset();
}

}  // namespace taas
