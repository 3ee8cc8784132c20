#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/jit_type.h>
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/_amp_update_scale.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <exception>
#include <string>

#include "taas/amp.hpp"
#include "taas/error.hpp"

namespace taas {
namespace {

using GradientLists = std::vector<std::vector<at::Tensor>>;

[[noreturn]] void refuse_order(const std::string& what) { throw InvalidArgument("GradScaler: " + what); }

void check_scaled(const at::Tensor& scale, const std::string& call) {
  if (!scale.defined()) refuse_order(call + " was called before scale(loss)");
}

/// All gradients of an optimizer in lists of one device and type each, which one kernel takes.
GradientLists gradients_by_kind(const torch::optim::Optimizer& optimizer) {
  GradientLists lists;
  for (const auto& group : optimizer.param_groups()) {
    for (const auto& parameter : group.params()) {
      const auto& gradient = parameter.grad();
      if (!gradient.defined()) continue;
      if (gradient.scalar_type() == at::kHalf)
        throw InvalidArgument(
            "a gradient is in float16 and cannot be unscaled: keep the parameters in float32, and compute under "
            "Autocast");
      const auto values = gradient.is_sparse() ? gradient._values() : gradient;
      auto list = std::find_if(lists.begin(), lists.end(), [&](const std::vector<at::Tensor>& each) {
        return each[0].device() == values.device() && each[0].scalar_type() == values.scalar_type();
      });
      if (list == lists.end()) list = lists.emplace(lists.end());
      list->push_back(values);
    }
  }
  return lists;
}

}  // namespace

GradScaler::GradScaler(const GradScalerOptions& options) : options_(options) {
  if (!options.enabled) return;
  if (options.growth_factor <= 1)
    throw InvalidArgument("the growth_factor of a GradScaler has to be above 1, and is " +
                          std::to_string(options.growth_factor));
  if (options.backoff_factor >= 1)
    throw InvalidArgument("the backoff_factor of a GradScaler has to be below 1, and is " +
                          std::to_string(options.backoff_factor));
}

at::Tensor GradScaler::scale(const at::Tensor& outputs) {
  if (!options_.enabled) return outputs;
  if (!scale_.defined()) {
    const auto scalar = at::TensorOptions(outputs.device());
    scale_ = at::full({}, options_.init_scale, scalar.dtype(at::kFloat));
    tracker_ = at::full({}, first_tracker_, scalar.dtype(at::kInt));
  }
  return outputs * scale_.to(outputs.device(), /*non_blocking=*/true);
}

void GradScaler::unscale_(torch::optim::Optimizer& optimizer) {
  if (!options_.enabled) return;
  check_scaled(scale_, "unscale_()");
  auto& [stage, found] = optimizers_[&optimizer];
  if (stage == Stage::kUnscaled) refuse_order("unscale_() has been called for this optimizer since the last update()");
  if (stage == Stage::kStepped) refuse_order("unscale_() is called after step()");
  const at::NoGradGuard no_grad;
  const auto inverse = scale_.to(at::kDouble).reciprocal().to(at::kFloat);
  found.clear();
  for (const auto& gradients : gradients_by_kind(optimizer)) {
    const auto device = gradients[0].device();
    found.push_back(at::zeros({}, scale_.options().device(device)));
    at::_amp_foreach_non_finite_check_and_unscale_(gradients, found.back(), inverse.to(device));
  }
  stage = Stage::kUnscaled;
}

bool GradScaler::step(torch::optim::Optimizer& optimizer) {
  if (!options_.enabled) {
    optimizer.step();
    return true;
  }
  check_scaled(scale_, "step()");
  auto& [stage, found] = optimizers_[&optimizer];
  if (stage == Stage::kStepped) refuse_order("step() has been called since the last update()");
  if (stage == Stage::kReady) unscale_(optimizer);
  if (found.empty()) refuse_order("step() was called for an optimizer without gradients");
  const bool finite =
      std::all_of(found.begin(), found.end(), [](const at::Tensor& each) { return each.item<double>() == 0; });
  if (finite) optimizer.step();
  stage = Stage::kStepped;
  return finite;
}

void GradScaler::update(std::optional<double> new_scale) {
  if (!options_.enabled) return;
  check_scaled(scale_, "update()");
  if (new_scale) {
    scale_.fill_(*new_scale);
  } else {
    at::Tensor found;
    for (const auto& [optimizer, state] : optimizers_) {
      for (const auto& each : state.found) {
        const auto here = each.to(scale_.device(), /*non_blocking=*/true);
        found = found.defined() ? found + here : here;
      }
    }
    if (!found.defined()) refuse_order("update() was called without a step() or unscale_() before it");
    at::_amp_update_scale_(scale_, tracker_, found, options_.growth_factor, options_.backoff_factor,
                           options_.growth_interval);
  }
  optimizers_.clear();
}

double GradScaler::get_scale() const {
  if (!options_.enabled) return 1;
  return scale_.defined() ? scale_.item<double>() : options_.init_scale;
}

std::int64_t GradScaler::growth_tracker() const {
  return tracker_.defined() ? tracker_.item<std::int64_t>() : first_tracker_;
}

c10::IValue GradScaler::state() const {
  c10::impl::GenericDict state(c10::StringType::get(), c10::AnyType::get());
  if (!options_.enabled) return state;
  state.insert("scale", get_scale());
  state.insert("growth_factor", options_.growth_factor);
  state.insert("backoff_factor", options_.backoff_factor);
  state.insert("growth_interval", options_.growth_interval);
  state.insert("_growth_tracker", growth_tracker());
  return state;
}

void GradScaler::load_state(const c10::IValue& state) {
  if (!options_.enabled) return;
  try {
    const auto values = state.toGenericDict();
    auto options = options_;
    options.init_scale = values.at("scale").toScalar().toDouble();
    options.growth_factor = values.at("growth_factor").toScalar().toDouble();
    options.backoff_factor = values.at("backoff_factor").toScalar().toDouble();
    options.growth_interval = values.at("growth_interval").toInt();
    first_tracker_ = values.at("_growth_tracker").toInt();
    options_ = options;
  } catch (const std::exception&) {
    throw CheckpointError(
        "this is not the state of a GradScaler: give load_state() what state() of an enabled one gave");
  }
  scale_ = tracker_ = at::Tensor();  // made anew from these with the next outputs
}

}  // namespace taas
