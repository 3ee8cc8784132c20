#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "taas/comm_hooks.hpp"
#include "taas/join.hpp"
#include "taas/output_tensors.hpp"
#include "taas/process_group.hpp"

namespace taas {

/// The options of torch.nn.parallel.DistributedDataParallel, with its names, defaults and results.
struct DistributedDataParallelOptions {
  /// Size of a gradient bucket in MiB; unset means 25, with a first bucket of 1 MiB.
  std::optional<double> bucket_cap_mb = std::nullopt;
  /// Parameters that get no gradient in an iteration are found from the outputs of forward, instead of being an error.
  bool find_unused_parameters = false;
  /// The set of used parameters and the graph are the same in every iteration.
  bool static_graph = false;
  /// Gradients live in the buckets: one copy of them less. Use the wrapper's zero_grad() then, not the optimizer's.
  bool gradient_as_bucket_view = false;
  /// Buffers (batch norm's running statistics) become those of rank 0 at construction and before each forward.
  bool broadcast_buffers = true;
  /// Check at construction that all ranks have the same parameters, and give all those of rank 0.
  bool init_sync = true;
};

namespace detail {

/// The part of the wrapper that knows only torch::nn::Module. In a group of one process it does nothing.
class DataParallelCore : public Joinable {
 public:
  DataParallelCore(std::shared_ptr<torch::nn::Module> module, ProcessGroup group,
                   const DistributedDataParallelOptions& options);
  ~DataParallelCore() override;

  void before_forward();
  /// Whether after_forward has to be given the outputs.
  bool wants_outputs() const;
  /// Prepares the reduction of the backward that follows; may replace `outputs` by tensors to be returned in their
  /// place.
  void after_forward(const std::vector<at::Tensor*>& outputs);
  void zero_grad();
  /// Returns what it was.
  bool set_gradient_sync(bool sync);
  void register_comm_hook(const std::shared_ptr<CommHook>& hook);
  void register_comm_hook(BuiltinCommHook hook);

  std::unique_ptr<JoinHook> join_hook(const JoinOptions& options) override;
  const ProcessGroup& join_process_group() const override;
  void leave_join() override;

  [[noreturn]] static void refuse_output_type(std::string_view type);

 private:
  class Impl;
  class ShadowHook;
  std::unique_ptr<Impl> impl_;
};

}  // namespace detail

/// Trains one replica of a module per rank: backward() leaves in each parameter's grad the average over all ranks,
/// summed in buckets while backward is still running. Numerics are those of Python's DistributedDataParallel, to the
/// bit.
///
///     taas::DistributedDataParallel model(std::make_shared<Net>(), group);
///     model.zero_grad();
///     torch::nll_loss(model(images), labels).backward();
///     optimizer.step();
///
/// The module is shared, not copied; it must be on group.device() already, or with its parts on several devices of that
/// kind (as in Python with device_ids=None), and its parameters must not be added or replaced while the wrapper lives.
/// M::forward may return whatever OutputTensors can look into.
///
/// Throws InvalidArgument when the module has no parameter that needs a gradient, parameters on devices of another kind
/// than the group's, or (naming the parameter) other parameters than rank 0's; Exception, with the names, when backward
/// was not able to reduce all.
template <class M>
class DistributedDataParallel {
 public:
  DistributedDataParallel(std::shared_ptr<M> module, ProcessGroup group,
                          const DistributedDataParallelOptions& options = {})
      : module_(std::move(module)),
        group_(std::move(group)),
        core_(std::make_unique<detail::DataParallelCore>(module_, group_, options)) {}

  DistributedDataParallel(const torch::nn::ModuleHolder<M>& module, ProcessGroup group,
                          const DistributedDataParallelOptions& options = {})
      : DistributedDataParallel(module.ptr(), std::move(group), options) {}

  template <class... Inputs>
  auto forward(Inputs&&... inputs) {
    core_->before_forward();
    auto output = module_->forward(std::forward<Inputs>(inputs)...);
    std::vector<at::Tensor*> tensors;
    if (core_->wants_outputs()) tensors = find_tensors(output);
    core_->after_forward(tensors);
    return output;
  }

  template <class... Inputs>
  auto operator()(Inputs&&... inputs) {
    return forward(std::forward<Inputs>(inputs)...);
  }

  /// While the returned scope lives, gradients are accumulated on each rank alone; the first forward and backward after
  /// it reduce the sum. Both forward and backward of the accumulated steps belong into the scope.
  class [[nodiscard]] NoSync {
   public:
    explicit NoSync(detail::DataParallelCore& core) : core_(core), before_(core.set_gradient_sync(false)) {}
    ~NoSync() { core_.set_gradient_sync(before_); }
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    detail::DataParallelCore& core_;
    bool before_;
  };
  NoSync no_sync() { return NoSync(*core_); }

  /// Clears the gradients, with and without gradient_as_bucket_view (where Optimizer::zero_grad throws).
  void zero_grad() { core_->zero_grad(); }

  /// Once, before the first backward: `hook` reduces the gradients, instead of the average. In a group of one process
  /// no hook runs. Throws InvalidArgument for a second one.
  void register_comm_hook(const std::shared_ptr<CommHook>& hook) { core_->register_comm_hook(hook); }
  void register_builtin_comm_hook(BuiltinCommHook hook) { core_->register_comm_hook(hook); }

  /// For taas::Join.
  operator Joinable&() { return *core_; }

  M& module() { return *module_; }
  const M& module() const { return *module_; }
  const std::shared_ptr<M>& module_ptr() const { return module_; }
  const ProcessGroup& process_group() const { return group_; }

 private:
  template <class Output>
  static std::vector<at::Tensor*> find_tensors(Output& output) {
    std::vector<at::Tensor*> found;
    if constexpr (OutputTensors<Output>::kKnown) {
      OutputTensors<Output>::visit(output, [&](at::Tensor& tensor) { found.push_back(&tensor); });
    } else {
      detail::DataParallelCore::refuse_output_type(typeid(Output).name());
    }
    return found;
  }

  std::shared_ptr<M> module_;
  ProcessGroup group_;
  std::unique_ptr<detail::DataParallelCore> core_;
};

template <class Holder>
requires requires { typename Holder::ContainedType; }
DistributedDataParallel(const Holder&, ProcessGroup, DistributedDataParallelOptions = {})
    ->DistributedDataParallel<typename Holder::ContainedType>;

}  // namespace taas
