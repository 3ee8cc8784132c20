#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

#include "taas/process_group.hpp"
#include "taas/recordable_optimizer.hpp"

namespace taas {

namespace detail {
class StepGraph;
}

/// Makes a stream of its own this thread's current one as long as it lives, on a GPU; nothing on the CPU. CUDA cannot
/// record the default stream, nor a backward pass whose model was wrapped while that was the current one: make this
/// before DistributedDataParallel and before GraphedStep.
class OwnStream {
 public:
  explicit OwnStream(c10::Device device);
  ~OwnStream();
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct GraphedStepOptions {
  bool enabled = true;  ///< false: each step is run as it is
  /// The first steps are run as they are: torch's DDP settles its buckets and stops measuring itself within eleven.
  int warmup = 11;
  /// Inputs of other shapes or types than those of the warm-up (a last, smaller batch): run as they are, or
  /// InvalidArgument.
  bool eager_for_others = true;
};

/// A training step that is recorded once in a CUDA graph (forward, backward, all-reduce and optimizer) and then
/// replayed with one launch. Where no graph is possible, on the CPU and under gloo, each step is run as it is, with the
/// same results.
///
///     taas::OwnStream stream(group.device());
///     taas::DistributedDataParallel model(network, group);
///     taas::Adam optimizer(network->parameters(), torch::optim::AdamOptions(1e-3), {.capturable = true});
///     taas::GraphedStep step(group, [&](const std::vector<at::Tensor>& batch) {
///       model.zero_grad();
///       auto loss = torch::nll_loss(model(batch[0]), batch[1]);
///       loss.backward();
///       optimizer.step();
///       return loss;
///     }, {&optimizer});
///     for (auto& [images, labels] : batches) losses += step({images, labels});
///
/// The step function must do the same work for each input: it must not read a result on the CPU (item()), copy between
/// CPU and GPU, seed a generator (do that between the calls: random numbers are as without a graph), or branch on
/// anything but shapes. Parameters stay where they are; a learning rate may change at any time; a loaded optimizer
/// state is recorded anew. DDP's find_unused_parameters is not possible. All ranks call with the same shapes in the
/// same order: NCCL needs a collective to be recorded on all ranks or on none. After a replay, gradients are where the
/// recorded backward has put them: after a step that was not replayed, the parameters' grad may be others.
class GraphedStep {
 public:
  using Tensors = std::vector<at::Tensor>;
  /// Inputs on the group's device → the loss, or whatever tensor is to be returned.
  using Step = std::function<at::Tensor(const Tensors& inputs)>;

  /// `optimizers`: all that `step` uses; they outlive this. Throws InvalidArgument when a graph is possible and one of
  /// them is not capturable, or the current stream is the default one.
  GraphedStep(const ProcessGroup& group, Step step, std::vector<RecordableOptimizer*> optimizers,
              const GraphedStepOptions& options = {});
  /// On a given graph, or none: what the other constructor comes down to.
  GraphedStep(std::unique_ptr<detail::StepGraph> graph, Step step, std::vector<RecordableOptimizer*> optimizers,
              const GraphedStepOptions& options = {});
  ~GraphedStep();

  /// Does a step. What it returns is overwritten by the next call: add it up, or clone it. Throws InvalidArgument for
  /// other inputs (see eager_for_others), Exception when the step cannot be recorded, with CUDA's reason, and what the
  /// step throws.
  at::Tensor operator()(const Tensors& inputs);

  /// Whether steps on this group can be recorded: on a GPU, alone or under nccl.
  static bool is_possible(const ProcessGroup& group);
  /// Whether steps will be recorded at all.
  bool uses_graph() const;
  /// Whether the last call was a replay.
  bool replayed() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace taas
