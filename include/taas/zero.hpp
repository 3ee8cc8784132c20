#pragma once

#include <ATen/core/ivalue.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/sgd.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "taas/checkpoint.hpp"
#include "taas/join.hpp"
#include "taas/process_group.hpp"

namespace torch::nn {
class Module;
}

namespace taas {

struct ZeroOptions {
  /// 1: each rank keeps its share of the optimizer's state; gradients are those of DistributedDataParallel.
  /// 2: its share of the averaged gradients alone as well: this class averages them, and there is no
  /// DistributedDataParallel.
  int stage = 2;
  bool fused = false;  ///< see OptimizerKernels
  /// Of gradients (stage 2) and of the flat memory of parameters, in MiB; unset: as in DistributedDataParallel.
  std::optional<double> bucket_cap_mb = std::nullopt;
  /// Stage 2: parameters that get no gradient in a backward are found, instead of being an error. One that gets none on
  /// any rank is left as it is.
  bool find_unused_parameters = false;
  /// Stage 2: ranks are sent their own share of the sums alone. By default only under nccl: gloo sums everything on
  /// every rank anyway, and its buckets are then those of DistributedDataParallel, with sums of the same bits.
  std::optional<bool> reduce_scatter = std::nullopt;
  /// step() returns while parameters are still being gathered: call wait() before they are used, or wait_for() with
  /// each part of the module as forward comes to it. A parameter that is used without is an exception. Each parameter
  /// has the same bits as without. Within a Join step() waits itself.
  bool overlap_gather = false;
  /// The module's parameters(), where groups have them in another order: sums over more than two ranks depend, in
  /// their last bit, on where a gradient lies in its bucket.
  std::vector<at::Tensor> order{};
};

/// An optimizer whose state is spread over the ranks (ZeRO stages 1 and 2, Rajbhandari et al. 2020, arXiv:1910.02054).
/// Parameters become views of flat buckets; each rank updates an even slice of each bucket with SGD, Adam or AdamW of
/// this library, and gathers those of the others. The parameters are those of DistributedDataParallel with the same
/// optimizer, to the bit (docs/sharded-optimizer.md says what is different with `fused` SGD and `reduce_scatter`).
///
///     taas::ZeroOptimizer optimizer(net->parameters(), group, torch::optim::AdamWOptions(1e-3));
///     optimizer.zero_grad();
///     loss(net->forward(images), labels).backward();
///     optimizer.step();
///
/// Make it after the module was moved to its device, and before a GraphedStep would record; a parameter must not be
/// moved or replaced afterwards. Set rates as ever, with param_groups()[i].options().set_lr(). With stage 2,
/// param_groups() has this rank's shares in the place of the parameters: vectors, whose `grad` is what GradScaler
/// (with its `group`) has to look at, and the parameters' own `grad` is undefined after backward().
///
/// Throws InvalidArgument for another stage, parameters that are not on group.device(), no parameter that needs a
/// gradient, or parameters that differ between the ranks; backward() throws Exception, with their places in the
/// optimizer, when parameters got no gradient and find_unused_parameters is not set.
class ZeroOptimizer : public torch::optim::Optimizer, public Joinable {
 public:
  using Groups = std::vector<torch::optim::OptimizerParamGroup>;

  ZeroOptimizer(const Groups& groups, const ProcessGroup& group, const torch::optim::AdamOptions& defaults,
                const ZeroOptions& options = {});
  ZeroOptimizer(const Groups& groups, const ProcessGroup& group, const torch::optim::AdamWOptions& defaults,
                const ZeroOptions& options = {});
  ZeroOptimizer(const Groups& groups, const ProcessGroup& group, const torch::optim::SGDOptions& defaults,
                const ZeroOptions& options = {});
  template <class Defaults>
  ZeroOptimizer(std::vector<at::Tensor> parameters, const ProcessGroup& group, const Defaults& defaults,
                const ZeroOptions& options = {})
      : ZeroOptimizer(Groups{torch::optim::OptimizerParamGroup(std::move(parameters))}, group, defaults, options) {}
  ~ZeroOptimizer() override;

  /// A collective. Parameters are whole again when it returns (under nccl: for later work of the current stream); with
  /// overlap_gather after wait().
  /// As with torch's optimizers, parameters without a gradient are passed over in silence: before the first backward,
  /// and after zero_grad(), nothing is changed. Throws Exception with stage 2 when a gradient is there that was not
  /// averaged: each backward since was under no_sync().
  torch::Tensor step(LossClosure closure = nullptr) override;
  /// With overlap_gather: returns when the parameters are whole again (under nccl: for later work of the current
  /// stream), all of them or those of `module`. Throws as Work::wait() does, and again when it is called again. The
  /// next step(), states and shards, a Join and the destructor wait by themselves.
  void wait();
  void wait_for(const torch::nn::Module& module);
  /// Clears the gradients of the parameters and of the shares. Does not wait.
  void zero_grad();

  /// Stage 2: while the returned scope lives, gradients are accumulated on each rank alone, as with
  /// DistributedDataParallel::no_sync().
  class [[nodiscard]] NoSync {
   public:
    explicit NoSync(ZeroOptimizer& optimizer) : optimizer_(optimizer), before_(optimizer.set_gradient_sync(false)) {}
    ~NoSync() { optimizer_.set_gradient_sync(before_); }
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    ZeroOptimizer& optimizer_;
    bool before_;
  };
  NoSync no_sync() { return NoSync(*this); }

  /// Scales the gradients of all shares so that their norm is `max_norm` at most, and returns what it was; between
  /// backward() and step(). A collective with stage 2. Infinity: the largest absolute value. 0 when there is no
  /// gradient. Throws as step() does.
  double clip_grad_norm(double max_norm, double norm_type = 2.0);

  /// This rank's shares of the gradients; those that are not there are left out.
  std::vector<at::Tensor> gradient_shards();

  /// All of the state on rank `root`, as optimizer_state() of the optimizer that is not sharded has it (None on the
  /// others): for Checkpoint::optimizer, load_optimizer_state() and Python. Bucket by bucket, so that the other ranks
  /// need no memory for it. A collective.
  c10::IValue consolidated_state(int root = 0);
  /// Takes this rank's share of such a state, saved by any number of ranks or by an optimizer that is not sharded.
  /// Every rank gives all of it. Throws CheckpointError when groups, parameters or shapes differ.
  void load_state(const c10::IValue& state);

  /// Each rank writes its own share of the state into `directory`, which is made where it is missing and has to be the
  /// same on all machines; rank 0 also writes `rest`: the epoch, the model and whatever else, without an optimizer. The
  /// save that was there is removed once this one is complete and on disk; one that is cut off or fails leaves it. A
  /// collective. Throws CheckpointError on every rank, which names the rank and the file, when one could not write.
  void save_shards(const std::string& directory, const Checkpoint& rest = {});
  /// Takes this rank's share of what any number of ranks have saved there, and returns the rest. Only files are read
  /// that hold a part of the share. A collective. Throws CheckpointError on every rank, which names the rank and the
  /// file, before anything is changed, when one is missing, damaged or of another save, or when groups, types, shapes
  /// or memory formats of the parameters differ.
  Checkpoint load_shards(const std::string& directory);

  // Uneven inputs: taas::Join({model, optimizer}) with stage 1, taas::Join({optimizer}) with stage 2. A rank without
  // inputs goes on to update its share, with the gradients and the rates of the others.
  std::unique_ptr<JoinHook> join_hook(const JoinOptions& options) override;
  const ProcessGroup& join_process_group() const override;
  bool needs_gradients() const override;
  void leave_join() override;

  /// Bytes of the state on this rank.
  std::size_t state_bytes() const;

  /// Not for this class: they throw, and name consolidated_state() and load_state().
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

 private:
  class Impl;
  ZeroOptimizer(std::unique_ptr<Impl> impl, std::unique_ptr<torch::optim::OptimizerOptions> defaults);
  class ShadowHook;
  bool set_gradient_sync(bool sync);
  void update(bool has_inputs);
  double clip(double max_norm, double norm_type);
  void show_loaded_options();

  std::unique_ptr<Impl> impl_;
};

}  // namespace taas
