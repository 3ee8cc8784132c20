#include <ATen/TensorOperators.h>
#include <ATen/ops/_amp_update_scale.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <map>
#include <string>
#include <utility>

#include "taas/amp.hpp"
#include "taas/collectives.hpp"
#include "taas/error.hpp"
#include "training/amp/unscale.hpp"

namespace taas {
namespace {

enum class ScalerStage { kReady, kUnscaled, kStepped };

struct ScaledOptimizer {
  ScalerStage stage = ScalerStage::kReady;
  std::vector<at::Tensor> found;  // one for each device
};

[[noreturn]] void refuse_order(const std::string& what) { throw InvalidArgument("GradScaler: " + what); }

void check_factors(const GradScalerOptions& options) {
  if (options.growth_factor <= 1)
    throw InvalidArgument("the growth_factor of a GradScaler has to be above 1, and is " +
                          std::to_string(options.growth_factor));
  if (options.backoff_factor >= 1)
    throw InvalidArgument("the backoff_factor of a GradScaler has to be below 1, and is " +
                          std::to_string(options.backoff_factor));
}

}  // namespace

class GradScaler::Impl {
 public:
  explicit Impl(GradScalerOptions options) : options_(std::move(options)) {}

  at::Tensor scaled(const at::Tensor& outputs) {
    if (!scale_.defined()) {
      const auto scalar = at::TensorOptions(outputs.device());
      scale_ = at::full({}, options_.init_scale, scalar.dtype(at::kFloat));
      tracker_ = at::full({}, first_tracker_, scalar.dtype(at::kInt));
    }
    return outputs * scale_.to(outputs.device(), /*non_blocking=*/true);
  }

  void unscale(torch::optim::Optimizer& optimizer) {
    check_scaled("unscale_()");
    auto& state = optimizers_[&optimizer];
    if (state.stage == ScalerStage::kUnscaled)
      refuse_order("unscale_() has been called for this optimizer since the last update()");
    if (state.stage == ScalerStage::kStepped) refuse_order("unscale_() is called after step()");
    const auto inverse = scale_.to(at::kDouble).reciprocal().to(at::kFloat);
    state.found = unscale_gradients(optimizer, inverse, at::zeros({}, scale_.options()));
    agree(state.found);
    state.stage = ScalerStage::kUnscaled;
  }

  bool step(torch::optim::Optimizer& optimizer) {
    check_scaled("step()");
    auto& state = optimizers_[&optimizer];
    if (state.stage == ScalerStage::kStepped) refuse_order("step() has been called since the last update()");
    if (state.stage == ScalerStage::kReady) unscale(optimizer);
    if (state.found.empty()) refuse_order("step() was called for an optimizer without gradients");
    double found = 0;
    for (const auto& each : state.found) found += each.item<double>();
    if (found == 0) optimizer.step();
    state.stage = ScalerStage::kStepped;
    return found == 0;
  }

  void update(std::optional<double> new_scale) {
    check_scaled("update()");
    if (new_scale) {
      scale_.fill_(*new_scale);
    } else {
      at::_amp_update_scale_(scale_, tracker_, found_by_all(), options_.growth_factor, options_.backoff_factor,
                             options_.growth_interval);
    }
    optimizers_.clear();
  }

  [[nodiscard]] double scale() const { return scale_.defined() ? scale_.item<double>() : options_.init_scale; }
  [[nodiscard]] std::int64_t tracker() const {
    return tracker_.defined() ? tracker_.item<std::int64_t>() : first_tracker_;
  }

  void load(const c10::impl::GenericDict& state) {
    options_.init_scale = state.at("scale").toScalar().toDouble();
    options_.growth_factor = state.at("growth_factor").toScalar().toDouble();
    options_.backoff_factor = state.at("backoff_factor").toScalar().toDouble();
    options_.growth_interval = state.at("growth_interval").toInt();
    first_tracker_ = state.at("_growth_tracker").toInt();
    scale_ = tracker_ = at::Tensor();  // made anew from these with the next outputs
  }

  GradScalerOptions options_;

 private:
  void check_scaled(const char* call) const {
    if (!scale_.defined()) refuse_order(std::string(call) + " was called before scale(loss)");
  }

  /// What one rank has found, all have.
  void agree(std::vector<at::Tensor>& found) const {
    if (!options_.group || options_.group->world_size() == 1) return;
    auto any = at::zeros({1}, scale_.options());
    for (const auto& each : found) any += each.to(any.device());
    auto on_group = any.to(options_.group->device());
    all_reduce(*options_.group, on_group, ReduceOp::kMax);
    found = {on_group.to(scale_.device()).squeeze(0)};
  }

  [[nodiscard]] at::Tensor found_by_all() const {
    at::Tensor all;
    for (const auto& entry : optimizers_) {
      for (const auto& found : entry.second.found) {
        const auto here = found.to(scale_.device(), /*non_blocking=*/true);
        all = all.defined() ? all + here : here;
      }
    }
    if (!all.defined()) refuse_order("update() was called without a step() or unscale_() before it");
    return all;
  }

  at::Tensor scale_, tracker_;  // undefined before the first outputs
  std::int64_t first_tracker_ = 0;
  std::map<const torch::optim::Optimizer*, ScaledOptimizer> optimizers_;
};

GradScaler::GradScaler(const GradScalerOptions& options) : impl_(std::make_unique<Impl>(options)) {
  if (options.enabled) check_factors(options);
}
GradScaler::GradScaler(GradScaler&&) noexcept = default;
GradScaler& GradScaler::operator=(GradScaler&&) noexcept = default;
GradScaler::~GradScaler() = default;

bool GradScaler::is_enabled() const { return impl_->options_.enabled; }
double GradScaler::get_scale() const { return is_enabled() ? impl_->scale() : 1.0; }
std::int64_t GradScaler::growth_tracker() const { return is_enabled() ? impl_->tracker() : 0; }

at::Tensor GradScaler::scale(const at::Tensor& outputs) { return is_enabled() ? impl_->scaled(outputs) : outputs; }

std::vector<at::Tensor> GradScaler::scale(const std::vector<at::Tensor>& outputs) {
  std::vector<at::Tensor> all;
  for (const auto& each : outputs) all.push_back(scale(each));
  return all;
}

void GradScaler::unscale_(torch::optim::Optimizer& optimizer) {
  if (is_enabled()) impl_->unscale(optimizer);
}

bool GradScaler::step(torch::optim::Optimizer& optimizer) {
  if (is_enabled()) return impl_->step(optimizer);
  optimizer.step();
  return true;
}

void GradScaler::update(std::optional<double> new_scale) {
  if (is_enabled()) impl_->update(new_scale);
}

c10::IValue GradScaler::state() const {
  c10::impl::GenericDict state(c10::StringType::get(), c10::AnyType::get());
  if (!is_enabled()) return state;
  state.insert("scale", get_scale());
  state.insert("growth_factor", impl_->options_.growth_factor);
  state.insert("backoff_factor", impl_->options_.backoff_factor);
  state.insert("growth_interval", impl_->options_.growth_interval);
  state.insert("_growth_tracker", growth_tracker());
  return state;
}

void GradScaler::load_state(const c10::IValue& state) {
  if (!is_enabled()) return;
  try {
    impl_->load(state.toGenericDict());
  } catch (const std::exception&) {
    throw CheckpointError(
        "this is not the state of a GradScaler: give load_state() what state() of an enabled one gave");
  }
}

}  // namespace taas
