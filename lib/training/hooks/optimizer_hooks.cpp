#include <ATen/ATen.h>

#include <map>
#include <mutex>

#include "training/hooks/futures.hpp"

namespace taas {
namespace {

/// Steps of different parameters may run at the same time; only the table is shared.
class OptimizersOfParameters {
 public:
  explicit OptimizersOfParameters(MakeOptimizer make) : make_(std::move(make)) {}

  void step(const at::Tensor& parameter, const at::Tensor& gradient) {
    auto& optimizer = of(parameter);
    auto before = std::exchange(parameter.mutable_grad(), gradient);
    optimizer.step();
    parameter.mutable_grad() = std::move(before);  // the reducer writes into it
  }

 private:
  torch::optim::Optimizer& of(const at::Tensor& parameter) {
    const std::lock_guard lock(mutex_);
    auto& optimizer = optimizers_[parameter.unsafeGetTensorImpl()];
    if (!optimizer) optimizer = make_({parameter});
    return *optimizer;
  }

  MakeOptimizer make_;
  std::mutex mutex_;
  std::map<const at::TensorImpl*, std::unique_ptr<torch::optim::Optimizer>> optimizers_;
};

class OptimizerHook : public CommHook {
 public:
  OptimizerHook(std::shared_ptr<CommHook> hook, StepParameter step) : hook_(std::move(hook)), step_(std::move(step)) {}
  std::string name() const override { return "hook_then_optimizer_wrapper"; }
  bool is_needed_alone() const override { return true; }

  GradientFuture run(GradBucket& bucket) override {
    return then(hook_->run(bucket), [bucket, step = step_](const at::Tensor&) {
      at::NoGradGuard no_grad;
      const auto gradients = bucket.gradients();
      const auto parameters = bucket.parameters();
      for (std::size_t i = 0; i < gradients.size(); ++i) step(parameters[i], gradients[i]);
      return bucket.buffer();
    });
  }

 private:
  std::shared_ptr<CommHook> hook_;
  StepParameter step_;
};

}  // namespace

std::shared_ptr<CommHook> hook_then_optimizer(std::shared_ptr<CommHook> hook, StepParameter step) {
  return std::make_shared<OptimizerHook>(std::move(hook), std::move(step));
}

StepParameter optimizer_for_each_parameter(MakeOptimizer make) {
  auto optimizers = std::make_shared<OptimizersOfParameters>(std::move(make));
  return
      [optimizers](const at::Tensor& parameter, const at::Tensor& gradient) { optimizers->step(parameter, gradient); };
}

}  // namespace taas
