#pragma once

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <utility>
#include <vector>

#include "taas/adadelta.hpp"
#include "taas/recordable_optimizer.hpp"

// libtorch's own optimizers update one parameter after the other, a dozen kernels each, and the bits of Adam and
// RMSprop differ from Python's. These have the same options and states, also in checkpoints, and update all parameters
// of a group together with torch's _foreach_ operations, in the order of torch/optim/*.py: the same parameters as
// Python's optimizers, to the bit, of 32 as of 16 bits, on the CPU as on a GPU (where these operations are few
// kernels). OptimizerKernels has Python's other ways. Dense real gradients only; a sparse one is an InvalidArgument.

namespace taas {

class SGD : public torch::optim::SGD, public RecordableOptimizer {
 public:
  explicit SGD(const std::vector<torch::optim::OptimizerParamGroup>& groups, const torch::optim::SGDOptions& defaults,
               const OptimizerKernels& kernels = {});
  explicit SGD(std::vector<torch::Tensor> parameters, const torch::optim::SGDOptions& defaults,
               const OptimizerKernels& kernels = {})
      : SGD({torch::optim::OptimizerParamGroup(std::move(parameters))}, defaults, kernels) {}
  torch::Tensor step(LossClosure closure = nullptr) override;
  /// As libtorch's, also with DDP's gradient_as_bucket_view. Through a torch::optim::Optimizer& libtorch's own is
  /// called.
  void zero_grad(bool set_to_none = true) { detail::zero_gradients(*this, set_to_none); }
  void before_recording() override;
  void before_replay() override;
  bool still_recorded() override;
};

/// With `weight_decay` as part of the gradient, and with `amsgrad`.
class Adam : public torch::optim::Adam, public RecordableOptimizer {
 public:
  explicit Adam(const std::vector<torch::optim::OptimizerParamGroup>& groups,
                const torch::optim::AdamOptions& defaults = {}, const OptimizerKernels& kernels = {});
  explicit Adam(std::vector<torch::Tensor> parameters, const torch::optim::AdamOptions& defaults = {},
                const OptimizerKernels& kernels = {})
      : Adam({torch::optim::OptimizerParamGroup(std::move(parameters))}, defaults, kernels) {}
  torch::Tensor step(LossClosure closure = nullptr) override;
  /// As libtorch's, also with DDP's gradient_as_bucket_view. Through a torch::optim::Optimizer& libtorch's own is
  /// called.
  void zero_grad(bool set_to_none = true) { detail::zero_gradients(*this, set_to_none); }
  void before_recording() override;
  void before_replay() override;
  bool still_recorded() override;
};

/// With `weight_decay` apart from the gradient (Loshchilov and Hutter 2019, arXiv:1711.05101).
class AdamW : public torch::optim::AdamW, public RecordableOptimizer {
 public:
  explicit AdamW(const std::vector<torch::optim::OptimizerParamGroup>& groups,
                 const torch::optim::AdamWOptions& defaults = {}, const OptimizerKernels& kernels = {});
  explicit AdamW(std::vector<torch::Tensor> parameters, const torch::optim::AdamWOptions& defaults = {},
                 const OptimizerKernels& kernels = {})
      : AdamW({torch::optim::OptimizerParamGroup(std::move(parameters))}, defaults, kernels) {}
  torch::Tensor step(LossClosure closure = nullptr) override;
  /// As libtorch's, also with DDP's gradient_as_bucket_view. Through a torch::optim::Optimizer& libtorch's own is
  /// called.
  void zero_grad(bool set_to_none = true) { detail::zero_gradients(*this, set_to_none); }
  void before_recording() override;
  void before_replay() override;
  bool still_recorded() override;
};

/// With `momentum`, and with `centered` divided by the deviation of the gradients from their average.
class RMSprop : public torch::optim::RMSprop, public RecordableOptimizer {
 public:
  /// Throws InvalidArgument for `fused`: torch has no such kernel.
  explicit RMSprop(const std::vector<torch::optim::OptimizerParamGroup>& groups,
                   const torch::optim::RMSpropOptions& defaults = {}, const OptimizerKernels& kernels = {});
  explicit RMSprop(std::vector<torch::Tensor> parameters, const torch::optim::RMSpropOptions& defaults = {},
                   const OptimizerKernels& kernels = {})
      : RMSprop({torch::optim::OptimizerParamGroup(std::move(parameters))}, defaults, kernels) {}
  torch::Tensor step(LossClosure closure = nullptr) override;
  /// As libtorch's, also with DDP's gradient_as_bucket_view. Through a torch::optim::Optimizer& libtorch's own is
  /// called.
  void zero_grad(bool set_to_none = true) { detail::zero_gradients(*this, set_to_none); }
  void before_recording() override;
  void before_replay() override;
  bool still_recorded() override;
};

}  // namespace taas
