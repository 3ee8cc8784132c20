#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <torch/optim/optimizer.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "taas/process_group.hpp"

namespace c10d {
class GradBucket;
}

namespace taas {

/// The gradients that are reduced together. A handle: copies mean the same bucket, and a hook keeps one in whatever it
/// has to do when the communication is through.
class GradBucket {
 public:
  /// Unique among the buckets; they are reduced in this order, from 0.
  std::size_t index() const;
  /// Whether no other bucket follows in this backward.
  bool is_last() const;
  /// All gradients of the bucket, flat: (numel,), of one dtype and on one device. They are those of this rank, not yet
  /// divided by the world size.
  at::Tensor buffer() const;
  /// From here on buffer() and gradients() are in `buffer`: (numel,).
  void set_buffer(at::Tensor buffer);
  /// One view into the buffer for each parameter, of its shape.
  std::vector<at::Tensor> gradients() const;
  std::vector<at::Tensor> parameters() const;

  explicit GradBucket(std::shared_ptr<c10d::GradBucket> bucket) : bucket_(std::move(bucket)) {}

 private:
  std::shared_ptr<c10d::GradBucket> bucket_;
};

/// Holds a tensor, once the communication for it is through.
using GradientFuture = c10::intrusive_ptr<c10::ivalue::Future>;

/// How DistributedDataParallel reduces a bucket of gradients: given to its register_comm_hook() before the first
/// backward. One hook is for one model.
class CommHook {
 public:
  virtual ~CommHook() = default;
  /// Called in each backward, as soon as all gradients of the bucket are there, for one bucket after the other. Starts
  /// the communication and returns at once; the future's tensor has the shape and device of bucket.buffer(), floating
  /// point numbers where that has them, and becomes the gradients; anything else is an InvalidArgument in backward.
  /// Ranks whose inputs have ended call it too, with zeros.
  virtual GradientFuture run(GradBucket& bucket) = 0;
  /// Whether training goes wrong when it does not run: a group of one process reduces nothing, and refuses it.
  virtual bool is_needed_alone() const { return false; }
  /// For the logger.
  virtual std::string name() const { return "CommHook"; }
};

// What hooks are made of.

/// A future that is complete.
GradientFuture completed(const at::Tensor& tensor);
/// Divides `tensor` by the world size and starts the sum over the group, in place.
GradientFuture all_reduce_average(const ProcessGroup& group, const at::Tensor& tensor);
/// The future of what `next` makes of the tensor (InvalidArgument where `future` is null). It runs where the
/// communication ends, maybe on a thread of the backend: it must not wait for another collective.
GradientFuture then(const GradientFuture& future, std::function<at::Tensor(at::Tensor)> next);
/// The hook that returns `reduce(bucket)`, which may communicate and wait.
std::shared_ptr<CommHook> make_comm_hook(std::function<at::Tensor(GradBucket&)> reduce);

// The hooks of torch.distributed.algorithms.ddp_comm_hooks, with their names, defaults and results. `group` is that of
// the model.

/// The average, as without a hook.
std::shared_ptr<CommHook> allreduce_hook(ProcessGroup group);
/// The average of the gradients as 16 bit numbers, divided before they are summed.
std::shared_ptr<CommHook> fp16_compress_hook(ProcessGroup group);
std::shared_ptr<CommHook> bf16_compress_hook(ProcessGroup group);
/// `hook` sees 16 bit numbers.
std::shared_ptr<CommHook> fp16_compress_wrapper(std::shared_ptr<CommHook> hook);
std::shared_ptr<CommHook> bf16_compress_wrapper(std::shared_ptr<CommHook> hook);
/// Ranks exchange 8 bit numbers, with a scale and a zero point for each bucket (see MinMaxObserver in torch), or for
/// each `bucket_size` elements of it. Gradients have to be finite (InvalidArgument in backward).
std::shared_ptr<CommHook> quantization_pertensor_hook(ProcessGroup group);
std::shared_ptr<CommHook> quantization_perchannel_hook(ProcessGroup group, std::int64_t bucket_size = 512);
/// No communication at all: only to measure what it costs.
std::shared_ptr<CommHook> noop_hook();

/// The two hooks that torch has in C++.
enum class BuiltinCommHook { kAllReduce, kFp16Compress };

/// PowerSGD (https://arxiv.org/abs/1905.13727): gradients as products of two small matrices.
struct PowerSGDOptions {
  std::int64_t matrix_approximation_rank = 1;
  /// Plain averages before this iteration; at least 2 with error feedback or warm start.
  std::int64_t start_powerSGD_iter = 1000;
  /// Parameters that would not become smaller by this factor are averaged as they are.
  double min_compression_rate = 2;
  bool use_error_feedback = true;
  bool warm_start = true;
  /// Added to the norm of a column, against columns of zeros.
  double orthogonalization_epsilon = 0;
  std::uint32_t random_seed = 0;
  /// In iterations, for the log (level info).
  std::int64_t compression_stats_logging_frequency = 10'000;
  bool batch_tensors_with_same_shape = false;
};

/// Elements of the gradients so far, since PowerSGD began.
struct CompressionStats {
  double compress_rate = 0;
  std::int64_t numel_before_compression = 0;
  std::int64_t numel_after_compression = 0;
};

/// What PowerSGD remembers between iterations. Throws InvalidArgument for options that do not fit.
class PowerSGDState {
 public:
  explicit PowerSGDState(ProcessGroup group, const PowerSGDOptions& options = {});
  ~PowerSGDState();
  PowerSGDState(const PowerSGDState&) = delete;
  PowerSGDState& operator=(const PowerSGDState&) = delete;

  CompressionStats compression_stats() const;

  /// For a checkpoint of this rank: with error feedback each rank has its own. A state() of after a backward.
  [[nodiscard]] c10::IValue state() const;
  /// Goes on from there, on all ranks. The next backward averages plainly, as the buckets of a new wrapper are made
  /// anew after it; a bucket that is not like the one of then begins anew. Throws CheckpointError.
  void load_state(const c10::IValue& state);

  class Impl;
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

/// Compresses each parameter's gradient by itself, or all of a bucket as one square matrix.
std::shared_ptr<CommHook> powerSGD_hook(std::shared_ptr<PowerSGDState> state);
std::shared_ptr<CommHook> batched_powerSGD_hook(std::shared_ptr<PowerSGDState> state);

/// Post-local SGD (https://arxiv.org/abs/1808.07217): from `start_localSGD_iter` on gradients are averaged in
/// `subgroup` alone, or not at all, and a ModelAverager averages the parameters over all ranks now and then.
struct PostLocalSGDState {
  ProcessGroup process_group;
  ProcessGroup subgroup;
  std::int64_t start_localSGD_iter = 0;
  bool post_local_gradient_allreduce = true;
  std::int64_t iter = 0;  ///< backward passes so far, counted until local SGD begins
};
std::shared_ptr<CommHook> post_localSGD_hook(std::shared_ptr<PostLocalSGDState> state);

/// Runs `step(parameter, gradient)` for each parameter as soon as its bucket is reduced by `hook`, while backward is
/// still running, and not in a group of one process. Buckets may be ready at the same time, on threads of the backend.
/// Each gradient is there in full, but clipping over all of them is no longer possible.
using StepParameter = std::function<void(const at::Tensor& parameter, const at::Tensor& gradient)>;
std::shared_ptr<CommHook> hook_then_optimizer(std::shared_ptr<CommHook> hook, StepParameter step);
/// The same with an optimizer of its own for each parameter, made by `make({parameter})` in the first backward.
using MakeOptimizer = std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<at::Tensor>)>;
StepParameter optimizer_for_each_parameter(MakeOptimizer make);

// Averages of parameters (torch.distributed.algorithms.model_averaging). Parameters without a gradient are left out.

/// Which group averages in which step.
class ModelAverager {
 public:
  virtual ~ModelAverager() = default;
  /// To be called after each step of the optimizer, on all ranks.
  void average_parameters(const std::vector<at::Tensor>& parameters);
  void average_parameters(const torch::optim::Optimizer& optimizer);

  /// Calls so far; a checkpoint has to keep it.
  std::int64_t step() const { return step_; }
  void set_step(std::int64_t step) { step_ = step; }

 protected:
  /// The group in which parameters are averaged in this step, or none.
  virtual const ProcessGroup* group_of_step(std::int64_t step) const = 0;

 private:
  std::int64_t step_ = 0;
};

/// All of `group`, each `period` steps, from step `warmup_steps` on (which has to be the start_localSGD_iter of the
/// hook).
class PeriodicModelAverager : public ModelAverager {
 public:
  PeriodicModelAverager(ProcessGroup group, std::int64_t period, std::int64_t warmup_steps = 0);

 private:
  const ProcessGroup* group_of_step(std::int64_t step) const override;
  ProcessGroup group_;
  std::int64_t period_;
  std::int64_t warmup_steps_;
};

/// Small groups often, large ones seldom: `period_groups` in the order of rising periods; the last group is that of all
/// ranks. In a step that several periods divide, only the largest one's group averages.
class HierarchicalModelAverager : public ModelAverager {
 public:
  explicit HierarchicalModelAverager(std::vector<std::pair<std::int64_t, ProcessGroup>> period_groups,
                                     std::int64_t warmup_steps = 0);

 private:
  const ProcessGroup* group_of_step(std::int64_t step) const override;
  std::vector<std::pair<std::int64_t, ProcessGroup>> period_groups_;
  std::int64_t warmup_steps_;
};

/// An optimizer whose step averages the parameters afterwards. Both must live as long as this does.
class PostLocalSGDOptimizer {
 public:
  PostLocalSGDOptimizer(torch::optim::Optimizer& optimizer, ModelAverager& averager)
      : optimizer_(optimizer), averager_(averager) {}
  void step();
  torch::optim::Optimizer& optimizer() { return optimizer_; }
  ModelAverager& averager() { return averager_; }

 private:
  torch::optim::Optimizer& optimizer_;
  ModelAverager& averager_;
};

}  // namespace taas
