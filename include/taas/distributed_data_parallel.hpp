#pragma once

#include <torch/nn/module.h>

#include <concepts>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "taas/comm_hooks.hpp"
#include "taas/ddp/options.hpp"
#include "taas/join.hpp"
#include "taas/output_tensors.hpp"
#include "taas/process_group.hpp"

namespace taas {

namespace detail {

struct OtherForward {
  int forward = 0;
};
/// `forward` is ambiguous here when M has one, also an overloaded or a templated one.
template <class M>
struct BothForwards : M, OtherForward {};

template <class M>
concept HasForward = !requires {
  &BothForwards<M>::forward;
};

}  // namespace detail

/// What can be wrapped: a class derived from torch::nn::Module with a function `forward`.
template <class M>
concept TrainableModule = std::derived_from<M, torch::nn::Module> && detail::HasForward<M>;

namespace detail {

/// The part of the wrapper that knows only torch::nn::Module. In a group of one process it does nothing.
class DataParallelCore : public Joinable {
 public:
  DataParallelCore(std::shared_ptr<torch::nn::Module> module, ProcessGroup group,
                   const DistributedDataParallelOptions& options);
  ~DataParallelCore() override;

  void before_forward();
  /// Whether inputs have to go through change_input.
  bool changes_inputs() const;
  /// To the device of the module, when that is one GPU.
  void change_input(at::Tensor& input) const;
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
  void register_buffer_comm_hook(BufferHook hook, BufferHookLocation location);
  void backward(const at::Tensor& loss, const at::Tensor& gradient, bool retain_graph, bool create_graph);
  void set_static_graph();
  void set_sink_clone(bool clone);
  void update_process_group(const ProcessGroup& group);
  void remove_autograd_hooks();
  void check_reducer_finalized();
  void require_manual_backward_finalization(bool required);
  bool should_finalize_after_backward() const;
  void finalize_backward();
  void set_runtime_logging_sample_rate(int rate);
  DataParallelLog logging_data() const;

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
template <TrainableModule M>
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
    auto output = run(std::forward<Inputs>(inputs)...);
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

  /// Instead of the broadcast of buffers from rank 0.
  void register_buffer_comm_hook(BufferHook hook, BufferHookLocation location = BufferHookLocation::kAfterForward) {
    core_->register_buffer_comm_hook(std::move(hook), location);
  }

  /// loss.backward(), whose errors are c10::Error, with errors that are taas::Exception: for a parameter that is used
  /// twice, a changed static graph, ranks that are gone.
  void backward(const at::Tensor& loss, const at::Tensor& gradient = {}, bool retain_graph = false,
                bool create_graph = false) {
    core_->backward(loss, gradient, retain_graph, create_graph);
  }

  /// As the option, before the first forward.
  void set_static_graph() { core_->set_static_graph(); }
  /// Outputs pass a node of the graph for find_unused_parameters and for the first iteration of a static graph, which
  /// copies them; without the copy they must not be changed in place.
  void set_sink_clone(bool clone) { core_->set_sink_clone(clone); }

  /// Between two iterations: gradients are averaged over `group` from now on. All its ranks call it; hooks keep the
  /// group that they have. Throws InvalidArgument for a group without communication (of one process).
  void update_process_group(const ProcessGroup& group) {
    core_->update_process_group(group);
    group_ = group;
  }
  /// Gradients stay as they are on each rank from now on.
  void remove_autograd_hooks() { core_->remove_autograd_hooks(); }
  /// After backward. Throws Exception when it has not reduced all gradients.
  void check_reducer_finalized() { core_->check_reducer_finalized(); }

  /// Backward does not wait for the reductions: finalize_backward() does, once after each backward that is reduced, and
  /// writes the gradients. With should_finalize_after_backward() (asked after forward) not before backward returns,
  /// else as soon as all gradients are there. Needs libtorch 2.15.
  void require_manual_backward_finalization(bool required) { core_->require_manual_backward_finalization(required); }
  bool should_finalize_after_backward() const { return core_->should_finalize_after_backward(); }
  void finalize_backward() { core_->finalize_backward(); }

  /// From now on DDP measures itself in the first ten iterations and in each `rate`th. A step waits for the GPU then,
  /// and none that is being recorded (GraphedStep) is measured.
  void set_runtime_logging_sample_rate(int rate) { core_->set_runtime_logging_sample_rate(rate); }
  DataParallelLog logging_data() const { return core_->logging_data(); }

  /// What the module has, by the names that it gives: without the "module." of Python's wrapper.
  void train(bool on = true) { module_->train(on); }
  void eval() { module_->eval(); }
  bool is_training() const { return module_->is_training(); }
  std::vector<at::Tensor> parameters() const { return module_->parameters(); }
  torch::OrderedDict<std::string, at::Tensor> named_parameters() const { return module_->named_parameters(); }
  std::vector<at::Tensor> buffers() const { return module_->buffers(); }
  torch::OrderedDict<std::string, at::Tensor> named_buffers() const { return module_->named_buffers(); }
  /// For module_state, load_module_state and all that takes a module.
  operator torch::nn::Module&() { return *module_; }
  operator const torch::nn::Module&() const { return *module_; }

  /// For taas::Join.
  operator Joinable&() { return *core_; }

  M& module() { return *module_; }
  const M& module() const { return *module_; }
  const std::shared_ptr<M>& module_ptr() const { return module_; }
  const ProcessGroup& process_group() const { return group_; }

 private:
  template <class... Inputs>
  auto run(Inputs&&... inputs) {
    if constexpr (requires { module_->forward(changed(std::forward<Inputs>(inputs))...); }) {
      if (core_->changes_inputs()) return module_->forward(changed(std::forward<Inputs>(inputs))...);
    }
    return module_->forward(std::forward<Inputs>(inputs)...);
  }

  /// A copy with other tensors of what may hold some; all else as it is.
  template <class Input>
  decltype(auto) changed(Input&& input) {
    using Value = std::remove_cvref_t<Input>;
    if constexpr (OutputTensors<Value>::kKnown && std::is_copy_constructible_v<Value>) {
      Value copy = input;
      OutputTensors<Value>::visit(copy, [&](at::Tensor& tensor) { core_->change_input(tensor); });
      return copy;
    } else {
      return std::forward<Input>(input);
    }
  }

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
