#pragma once

#include <ATen/core/Tensor.h>
#include <torch/optim/optimizer.h>

#include <functional>
#include <memory>

#include "batch_source.hpp"
#include "options.hpp"
#include "taas/process_group.hpp"
#include "taas/recordable_optimizer.hpp"
#include "tensor_module.hpp"

namespace taas::train {

/// A model, spread over ranks or devices as --parallel says.
struct SpreadModel {
  std::shared_ptr<TensorModule> module;
  c10::Device device{c10::kCPU};  ///< where inputs are expected
  std::function<at::Tensor(const at::Tensor&)> forward;
  std::function<void()> zero_grad;
};

/// Throws InputError when there are fewer devices than --devices says.
SpreadModel make_spread_model(const Options& options, const ProcessGroup& group);

/// The optimizer of the model: Adadelta of mnist, SGD of the others.
struct ModelOptimizer {
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  RecordableOptimizer* recordable = nullptr;  ///< the same one
};

/// `capturable`: for steps of a CUDA graph.
ModelOptimizer make_optimizer(const Options& options, const TensorModule& module, bool capturable);

/// What a step does on the device, and nothing else, so that it can be recorded. Returns the loss.
at::Tensor learn_from(SpreadModel& model, torch::optim::Optimizer& optimizer, const BatchSource& source,
                      const at::Tensor& indices);

}  // namespace taas::train
