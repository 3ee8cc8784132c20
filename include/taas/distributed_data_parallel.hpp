#pragma once

#include <torch/nn/module.h>

#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "taas/comm_hooks.hpp"
#include "taas/output_tensors.hpp"
#include "taas/process_group.hpp"

namespace c10d {
class Logger;
class Reducer;
}  // namespace c10d

namespace taas {

/// The options of torch.nn.parallel.DistributedDataParallel, with its names, defaults and results.
struct DistributedDataParallelOptions {
  /// Size of a gradient bucket in MiB; unset means 25, with a first bucket of 1 MiB.
  std::optional<double> bucket_cap_mb = std::nullopt;
  /// Parameters that get no gradient in an iteration are found from the outputs of forward, instead of being an error.
  bool find_unused_parameters = false;
  /// The set of used parameters and the graph are the same in every iteration.
  bool static_graph = false;
  /// Gradients live in the buckets: one copy of them less. zero_grad() has to be the wrapper's, not that of an
  /// optimizer.
  bool gradient_as_bucket_view = false;
  /// Buffers (batch norm's running statistics) become those of rank 0 at construction and before each forward.
  bool broadcast_buffers = true;
  /// Check at construction that all ranks have the same parameters, and give all those of rank 0.
  bool init_sync = true;
  /// As broadcast_buffers, whose place it takes, but only for forward: at construction buffers become those of rank 0.
  std::optional<bool> forward_sync_buffers = std::nullopt;
  /// A size in MiB for each bucket, the last one for all further; instead of bucket_cap_mb.
  std::vector<double> bucket_cap_mb_list = {};
  /// Buckets of which no parameter was found to be used are not reduced; these must be the same on all ranks.
  bool skip_all_reduce_unused_params = false;
  /// Gradients go to a bucket, and back, in one operation for all of it. Needs libtorch 2.15.
  bool batched_grad_copy = false;
  /// Buckets have memory only during backward. Needs libtorch 2.15.
  bool lazy_bucket_allocation = false;
};

class CommHookAdapter;

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

struct BackwardSink;

/// The part of the wrapper that knows only torch::nn::Module. In a group of one process it does nothing.
class DataParallel {
 public:
  DataParallel(std::shared_ptr<torch::nn::Module> module, ProcessGroup group,
               const DistributedDataParallelOptions& options);
  ~DataParallel();
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  void before_forward();
  /// Whether inputs go through move_input(), to the GPU of the module.
  bool moves_inputs() const { return moves_inputs_; }
  void move_input(at::Tensor& input) const;
  /// Whether after_forward() has to be given the outputs.
  bool wants_outputs() const;
  /// Prepares the reduction of the backward that follows; may replace `outputs` by tensors to be returned in their
  /// place.
  void after_forward(const std::vector<at::Tensor*>& outputs);
  void zero_grad();
  /// Returns what it was.
  bool set_gradient_sync(bool sync) { return std::exchange(gradient_sync_, sync); }
  void register_comm_hook(const std::shared_ptr<CommHook>& hook);
  void backward(const at::Tensor& loss, const at::Tensor& gradient, bool retain_graph, bool create_graph) const;

  [[noreturn]] static void refuse_output_type(std::string_view type);

 private:
  using Tensors = std::vector<at::Tensor>;

  void replace_by_sink(const std::vector<at::Tensor*>& outputs);
  void synchronize_buffers() const;
  /// From rank 0.
  void broadcast(const Tensors& tensors) const;

  std::shared_ptr<torch::nn::Module> module_;
  ProcessGroup group_;
  DistributedDataParallelOptions options_;
  bool syncs_buffers_;                      ///< in forward
  std::shared_ptr<c10d::Reducer> reducer_;  ///< null in a group of one process
  std::shared_ptr<c10d::Logger> logger_;
  CommHookAdapter* hook_ = nullptr;  ///< the reducer's
  c10::intrusive_ptr<BackwardSink> sink_;
  bool moves_inputs_ = false;
  bool has_hook_ = false;
  bool gradient_sync_ = true;
  bool buffer_sync_ = true;  ///< the forward before was one whose gradients were to be reduced
};

}  // namespace detail

/// What can be wrapped: a class derived from torch::nn::Module with a function `forward`.
template <class M>
concept TrainableModule = std::derived_from<M, torch::nn::Module> && detail::HasForward<M>;

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
        core_(std::make_unique<detail::DataParallel>(module_, group_, options)) {}

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
    explicit NoSync(detail::DataParallel& core) : core_(core), before_(core.set_gradient_sync(false)) {}
    ~NoSync() { core_.set_gradient_sync(before_); }
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    detail::DataParallel& core_;
    bool before_;
  };
  NoSync no_sync() { return NoSync(*core_); }

  /// Clears the gradients, with and without gradient_as_bucket_view (where Optimizer::zero_grad throws).
  void zero_grad() { core_->zero_grad(); }

  /// Once, before the first backward: `hook` reduces the gradients, instead of the average. In a group of one process
  /// no hook runs. Throws InvalidArgument for a second one.
  void register_comm_hook(const std::shared_ptr<CommHook>& hook) { core_->register_comm_hook(hook); }

  /// loss.backward(), whose errors are c10::Error, with errors that are taas::Exception: for a parameter that is used
  /// twice, a changed static graph, ranks that are gone.
  void backward(const at::Tensor& loss, const at::Tensor& gradient = {}, bool retain_graph = false,
                bool create_graph = false) {
    core_->backward(loss, gradient, retain_graph, create_graph);
  }

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

  M& module() { return *module_; }
  const M& module() const { return *module_; }
  const std::shared_ptr<M>& module_ptr() const { return module_; }
  const ProcessGroup& process_group() const { return group_; }

 private:
  template <class... Inputs>
  auto run(Inputs&&... inputs) {
    if constexpr (requires { module_->forward(moved(std::forward<Inputs>(inputs))...); }) {
      if (core_->moves_inputs()) return module_->forward(moved(std::forward<Inputs>(inputs))...);
    }
    return module_->forward(std::forward<Inputs>(inputs)...);
  }

  /// A copy with tensors on the module's device of what may hold some; all else as it is.
  template <class Input>
  decltype(auto) moved(Input&& input) {
    using Value = std::remove_cvref_t<Input>;
    if constexpr (OutputTensors<Value>::kKnown && std::is_copy_constructible_v<Value>) {
      Value copy = input;
      OutputTensors<Value>::visit(copy, [&](at::Tensor& tensor) { core_->move_input(tensor); });
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
      detail::DataParallel::refuse_output_type(typeid(Output).name());
    }
    return found;
  }

  std::shared_ptr<M> module_;
  ProcessGroup group_;
  std::unique_ptr<detail::DataParallel> core_;
};

template <class Holder>
requires requires { typename Holder::ContainedType; }
DistributedDataParallel(const Holder&, ProcessGroup, DistributedDataParallelOptions = {})
    ->DistributedDataParallel<typename Holder::ContainedType>;

}  // namespace taas
