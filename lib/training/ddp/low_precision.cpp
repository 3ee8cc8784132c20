#include "training/ddp/low_precision.hpp"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/engine.h>

#include <algorithm>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <utility>

#include "taas/error.hpp"
#include "training/ddp/precision/bucket_sum.hpp"

namespace taas {
namespace {

void cast_buffers(const torch::nn::Module& module, const IgnoredNames& ignored, at::ScalarType type) {
  for (auto [name, buffer] : named_buffers_of(module, ignored)) {
    if (buffer.is_floating_point()) buffer.set_data(buffer.to(type));
  }
}

void at_end_of_backward(std::function<void()> call) {
  torch::autograd::Engine::get_default_engine().queue_callback(std::move(call));
}

}  // namespace

/// The reducer owns it, and it must not keep the reducer alive.
class LowPrecision::SumHook : public CommHook {
 public:
  explicit SumHook(std::weak_ptr<LowPrecision> owner) : owner_(std::move(owner)) {}
  GradientFuture run(GradBucket& bucket) override {
    const auto owner = owner_.lock();
    if (!owner) throw Exception("the wrapper of this gradient is gone: keep it until backward is over");
    return owner->reduce(bucket);
  }
  std::string name() const override { return "mixed_precision"; }

 private:
  std::weak_ptr<LowPrecision> owner_;
};

LowPrecision::LowPrecision(const torch::nn::Module& module, const IgnoredNames& ignored,
                           const std::vector<NamedTensor>& trained, const MixedPrecision& settings)
    : param_dtype_(settings.param_dtype), reduce_dtype_(settings.reduce_dtype), trained_(trained.size()) {
  auto all = trained;
  for (auto& named : named_parameters_of(module, ignored)) all.push_back(std::move(named));
  for (const auto& [name, parameter] : all) {
    if (!places_.emplace(parameter.unsafeGetTensorImpl(), parameters_.size()).second) continue;
    parameters_.emplace_back(parameter, param_dtype_);
  }
  if (settings.buffer_dtype) cast_buffers(module, ignored, *settings.buffer_dtype);
}

void LowPrecision::attach(const std::shared_ptr<Reducer>& reducer, const ProcessGroup& group) {
  reducer_ = reducer;
  group_ = group;
  hook_ = std::make_shared<SumHook>(weak_from_this());
  reducer->register_comm_hook(hook_);
}

void LowPrecision::cast_input(at::Tensor& input) const {
  if (param_dtype_ && input.is_floating_point()) input = input.to(*param_dtype_);
}

void LowPrecision::start_forward(bool reduces) {
  reduces_ = reduces;
  end_is_queued_ = false;
  for (auto& lowered : parameters_) {
    lowered.lower();
    lowered.lower_gradient();
  }
  if (!c10::GradMode::is_enabled()) return;
  awaits_backward_ = true;
  for (std::size_t i = 0; i < trained_; ++i) watch(i);
}

/// The reducer watches the nodes of parameters whose type stays as it was at its construction.
void LowPrecision::watch(std::size_t index) {
  auto& lowered = parameters_[index];
  if (!hook_) return lowered.watch([this] { queue_end_of_backward(); });
  if (!lowered.changes_type()) return;
  lowered.watch([reducer = reducer_, index] {
    if (const auto alive = reducer.lock()) alive->native().autograd_hook(index);
  });
}

void LowPrecision::end_forward() {
  if (awaits_backward_ || c10::GradMode::is_enabled()) return;
  for (auto& lowered : parameters_) {
    lowered.raise();
    lowered.raise_gradient();
  }
}

/// A parameter has its full values again as soon as its gradient is there: no node of backward needs it then.
GradientFuture LowPrecision::reduce(GradBucket& bucket) {
  auto sum = average_in_type(*group_, bucket.buffer(), reduce_dtype_);
  for (const auto& parameter : bucket.parameters()) {
    auto& lowered = parameters_[places_.at(parameter.unsafeGetTensorImpl())];
    lowered.raise();
    lowered.raise_gradient();
  }
  queue_end_of_backward();
  return sum;
}

/// Behind the reducer's own end of backward, which is queued after its last bucket: hence a callback in a callback.
void LowPrecision::queue_end_of_backward() {
  if (std::exchange(end_is_queued_, true)) return;
  at_end_of_backward([self = shared_from_this()] { at_end_of_backward([self] { self->end_backward(); }); });
}

bool LowPrecision::all_reduced_are_raised() const {
  return std::none_of(parameters_.begin(), parameters_.begin() + static_cast<std::ptrdiff_t>(trained_),
                      [](const LoweredParameter& lowered) { return lowered.is_low(); });
}

/// Not all are raised when a second backward of the same forward is to reduce the rest.
void LowPrecision::end_backward() {
  end_is_queued_ = false;
  if (hook_ ? !all_reduced_are_raised() : !reduces_) return;
  for (auto& lowered : parameters_) {
    lowered.unwatch();
    lowered.raise();
    if (!hook_ && reduce_dtype_) lowered.round_gradient(*reduce_dtype_);
  }
  awaits_backward_ = false;
  finish_gradients();
}

void LowPrecision::finish_gradients() {
  for (auto& lowered : parameters_) {
    if (!lowered.is_low()) lowered.raise_gradient();
  }
}

}  // namespace taas
