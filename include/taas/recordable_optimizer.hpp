#pragma once

#include <memory>

namespace torch::optim {
class Optimizer;
}

namespace taas {

/// How an optimizer computes, with Python's names and defaults.
struct OptimizerKernels {
  /// One kernel of torch's does the whole update of many parameters (SGD, Adam, AdamW): the bits of Python's
  /// `fused=True` on the same device, which are not those of the default.
  bool fused = false;
  /// The learning rate (as float32) and Adam's step counts are tensors beside the parameters, so that a step can be
  /// recorded by GraphedStep. For Adam, AdamW, RMSprop and Adadelta the bits of Python's `capturable=True` with a
  /// tensor as `lr`. Set the rate as ever, with options().set_lr().
  bool capturable = false;
};

namespace detail {
class StepMirror;
void zero_gradients(torch::optim::Optimizer& optimizer, bool set_to_none);
}  // namespace detail

/// What GraphedStep has to know of an optimizer: SGD, Adam, AdamW, RMSprop and Adadelta of this library. What belongs
/// to a step on the host (rates, counts) is done for each replay by these functions; users need none of them. An
/// optimizer belongs to one GraphedStep.
class RecordableOptimizer {
 public:
  virtual ~RecordableOptimizer();
  const OptimizerKernels& kernels() const;

  /// Rates and counts as they are on the host become those that the recorded kernels read.
  virtual void before_recording() = 0;
  /// The same, and counts the step that is going to be replayed.
  virtual void before_replay() = 0;
  /// Whether the recorded kernels still write to what the optimizer remembers; not after its state was loaded.
  virtual bool still_recorded() = 0;

 protected:
  explicit RecordableOptimizer(const OptimizerKernels& kernels);
  RecordableOptimizer(RecordableOptimizer&&) noexcept;

  std::unique_ptr<detail::StepMirror> mirror_;
};

}  // namespace taas
