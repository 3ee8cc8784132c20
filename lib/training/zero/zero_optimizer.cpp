#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <memory>
#include <string>

#include "taas/checkpoint.hpp"
#include "taas/error.hpp"
#include "taas/optimizers.hpp"
#include "taas/zero.hpp"
#include "training/zero/shard_files.hpp"
#include "training/zero/zero_impl.hpp"
#include "training/zero/zero_rates.hpp"

namespace taas {
namespace {

using Groups = ZeroOptimizer::Groups;

/// What ranks without inputs are told that the others do; clipping has its two numbers after it.
constexpr double kBackwardCall = 0, kClipCall = 1, kStepCall = 2;

std::unique_ptr<torch::optim::OptimizerOptions> copy_of(const torch::optim::OptimizerOptions& options) {
  return options.clone();
}

template <class Kind, class Defaults>
MakePart maker(const Defaults& defaults, const ZeroOptions& options) {
  return [defaults, fused = options.fused](const Groups& groups) {
    return std::make_unique<Kind>(groups, defaults, OptimizerKernels{.fused = fused});
  };
}

}  // namespace

ZeroOptimizer::ZeroOptimizer(const Groups& groups, const ProcessGroup& group, const torch::optim::AdamOptions& defaults,
                             const ZeroOptions& options)
    : ZeroOptimizer(std::make_unique<Impl>(groups, group, maker<Adam>(defaults, options), options), copy_of(defaults)) {
}
ZeroOptimizer::ZeroOptimizer(const Groups& groups, const ProcessGroup& group,
                             const torch::optim::AdamWOptions& defaults, const ZeroOptions& options)
    : ZeroOptimizer(std::make_unique<Impl>(groups, group, maker<AdamW>(defaults, options), options),
                    copy_of(defaults)) {}
ZeroOptimizer::ZeroOptimizer(const Groups& groups, const ProcessGroup& group, const torch::optim::SGDOptions& defaults,
                             const ZeroOptions& options)
    : ZeroOptimizer(std::make_unique<Impl>(groups, group, maker<SGD>(defaults, options), options), copy_of(defaults)) {}

ZeroOptimizer::ZeroOptimizer(std::unique_ptr<Impl> impl, std::unique_ptr<torch::optim::OptimizerOptions> defaults)
    : torch::optim::Optimizer(impl->shown_groups(), std::move(defaults)), impl_(std::move(impl)) {
  impl_->make_bucket_optimizers();
  if (!impl_->reducer) return;
  impl_->reducer->at_start([this] {
    impl_->stepped = false;
    const int active = Join::notify_call(*this, {kBackwardCall});
    return impl_->divide_by_initial_world_size ? impl_->group.world_size() : active;
  });
}

/// Parameters are left whole, unless an exception ends the scope or a rank is gone.
ZeroOptimizer::~ZeroOptimizer() {
  if (!impl_ || std::uncaught_exceptions() > impl_->exceptions_at_start) return;
  try {
    impl_->wait();
  } catch (const std::exception& error) {
    TORCH_WARN("the parameters of a taas::ZeroOptimizer that is no more cannot be used: ", error.what());
  }
}

void ZeroOptimizer::wait() { impl_->wait(); }
void ZeroOptimizer::wait_for(const torch::nn::Module& module) { impl_->wait_for(module.parameters()); }

torch::Tensor ZeroOptimizer::step(LossClosure closure) {
  impl_->wait();
  torch::Tensor loss;
  if (closure) loss = closure();
  impl_->check_gradients_are_averaged();
  Join::notify_call(*this, {kStepCall});
  update(true);
  return loss;
}

void ZeroOptimizer::update(bool has_inputs) {
  at::NoGradGuard no_grad;
  if (in_join() && impl_->group.native()) agree_on_rates(impl_->group, param_groups(), has_inputs);
  impl_->step(param_groups(), impl_->settings.overlap_gather && !in_join());
  impl_->stepped = true;
}

void ZeroOptimizer::zero_grad() {
  for (const auto& parameter : impl_->flat.parameters()) parameter.mutable_grad().reset();
  for (std::size_t b = 0; b < impl_->flat.size(); ++b) impl_->clear_shards(b);
}

bool ZeroOptimizer::set_gradient_sync(bool sync) { return !impl_->reducer || impl_->reducer->set_sync(sync); }

std::vector<at::Tensor> ZeroOptimizer::gradient_shards() { return impl_->gradients(); }

double ZeroOptimizer::clip_grad_norm(double max_norm, double norm_type) {
  impl_->check_gradients_are_averaged();
  Join::notify_call(*this, {kClipCall, max_norm, norm_type});
  return clip(max_norm, norm_type);
}

double ZeroOptimizer::clip(double max_norm, double norm_type) {
  at::NoGradGuard no_grad;
  const auto gradients = impl_->gradients();
  const bool largest = std::isinf(norm_type);
  auto total = at::zeros({1}, at::TensorOptions(at::kDouble).device(impl_->group.device()));
  for (const auto& gradient : gradients) {
    const auto norm = at::linalg_vector_norm(gradient, norm_type, {}, false, at::kDouble);
    largest ? total.copy_(at::maximum(total, norm)) : total.add_(norm.pow(norm_type));
  }
  if (impl_->settings.stage == 2) all_reduce(impl_->group, total, largest ? ReduceOp::kMax : ReduceOp::kSum);
  const double norm = largest ? total.item<double>() : std::pow(total.item<double>(), 1 / norm_type);
  const double scale = std::min(1.0, max_norm / (norm + 1e-6));
  for (auto gradient : gradients) gradient.mul_(scale);
  return norm;
}

class ZeroOptimizer::ShadowHook : public JoinHook {
 public:
  explicit ShadowHook(ZeroOptimizer& optimizer) : optimizer_(optimizer) {}
  void call_hook(const JoinCall& call) override {
    if (call[0] == kBackwardCall) return optimizer_.impl_->shadow_backward();
    if (call[0] == kClipCall) {
      optimizer_.clip(call[1], call[2]);
      return;
    }
    optimizer_.update(false);
    optimizer_.zero_grad();
  }

 private:
  ZeroOptimizer& optimizer_;
};

std::unique_ptr<JoinHook> ZeroOptimizer::join_hook(const JoinOptions& options) {
  impl_->wait();
  impl_->divide_by_initial_world_size = options.divide_by_initial_world_size;
  return std::make_unique<ShadowHook>(*this);
}
const ProcessGroup& ZeroOptimizer::join_process_group() const { return impl_->group; }
bool ZeroOptimizer::needs_gradients() const { return impl_->settings.stage == 1; }
void ZeroOptimizer::leave_join() { impl_->divide_by_initial_world_size = true; }

c10::IValue ZeroOptimizer::consolidated_state(int root) {
  impl_->wait();
  impl_->take_options(param_groups());
  return gather_state(impl_->group, impl_->flat, impl_->buckets, impl_->map, root);
}

void ZeroOptimizer::load_state(const c10::IValue& state) {
  impl_->wait();
  scatter_state(impl_->flat, impl_->buckets, impl_->map, state);
  show_loaded_options();
}

void ZeroOptimizer::save_shards(const std::string& directory, const Checkpoint& rest) {
  impl_->wait();
  impl_->take_options(param_groups());
  save_shard_files({impl_->group, impl_->flat, impl_->buckets, impl_->map}, directory, rest);
}

Checkpoint ZeroOptimizer::load_shards(const std::string& directory) {
  impl_->wait();
  auto rest = load_shard_files({impl_->group, impl_->flat, impl_->buckets, impl_->map}, directory);
  show_loaded_options();
  return rest;
}

void ZeroOptimizer::show_loaded_options() {
  auto& shown = param_groups();
  for (std::size_t g = 0; g < shown.size(); ++g) {
    shown[g].set_options(impl_->buckets.front().optimizer->param_groups()[g].options().clone());
  }
}

std::size_t ZeroOptimizer::state_bytes() const {
  std::size_t bytes = 0;
  for (const auto& bucket : impl_->buckets) {
    const auto states = optimizer_state(*bucket.optimizer).toGenericDict().at("state").toGenericDict();
    for (const auto& state : states) {
      for (const auto& field : state.value().toGenericDict()) {
        if (field.value().isTensor()) bytes += field.value().toTensor().nbytes();
      }
    }
  }
  return bytes;
}

void ZeroOptimizer::save(torch::serialize::OutputArchive& /*archive*/) const {
  throw Exception("a ZeroOptimizer has a share of the state only: use consolidated_state()");
}
void ZeroOptimizer::load(torch::serialize::InputArchive& /*archive*/) {
  throw Exception("a ZeroOptimizer has a share of the state only: use load_state()");
}

}  // namespace taas
