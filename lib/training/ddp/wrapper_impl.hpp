#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "taas/distributed_data_parallel.hpp"
#include "training/ddp/backward_sink.hpp"
#include "training/ddp/delayed_reduction.hpp"
#include "training/ddp/low_precision.hpp"
#include "training/ddp/module_tensors.hpp"
#include "training/ddp/reducer.hpp"

namespace taas::detail {

/// The wrapper's state, and what happens around forward and backward.
class DataParallelCore::Impl {
 public:
  using Tensors = std::vector<at::Tensor>;

  Impl(const Joinable& joinable, std::shared_ptr<torch::nn::Module> module, ProcessGroup group,
       const DistributedDataParallelOptions& options);

  void before_forward();
  bool wants_outputs() const;
  void after_forward(const std::vector<at::Tensor*>& outputs);
  void zero_grad();
  bool set_gradient_sync(bool sync) { return std::exchange(gradient_sync_, sync); }
  bool changes_inputs() const { return moves_inputs_ || (precision_ && precision_->casts_inputs()); }
  void change_input(at::Tensor& input) const;
  void backward(const at::Tensor& loss, const at::Tensor& gradient, bool retain_graph, bool create_graph) const;

  void register_comm_hook(const std::shared_ptr<CommHook>& hook);
  template <class Hook>
  void register_once(const Hook& hook) {
    claim_hook();
    if (reducer_) reducer_->register_comm_hook(hook);
  }
  void register_buffer_hook(BufferHook hook, BufferHookLocation location);

  void start_join(const JoinOptions& options);
  void leave_join();
  void keep_gradients() { keeps_gradients_ = true; }
  /// Takes part in what forward and backward of the other ranks communicate.
  void shadow_iteration();
  void become_model_of_last(bool is_last_joiner);

  void set_static_graph();
  void set_sink_clone(bool clone) { sink_->clones = clone; }
  void update_process_group(const ProcessGroup& group);
  void remove_autograd_hooks();
  void require_manual_finalization(bool required);
  bool should_finalize_after_backward() const;
  void finalize_backward();
  /// Null in a group of one process, and when all gradients are delayed.
  Reducer* reducer() const { return reducer_.get(); }
  const ProcessGroup& group() const { return group_; }

 private:
  void delay_parameters();
  void make_reducer(const std::vector<NamedTensor>& parameters);
  void claim_hook();
  void set_precision(const std::vector<NamedTensor>& parameters);
  void start_step();
  void synchronize_before(const std::vector<NamedTensor>& parameters);
  void replace_by_sink(const std::vector<at::Tensor*>& outputs);
  Tensors states(bool with_buffers) const;
  bool runs_buffer_hook(BufferHookLocation location) const;
  void synchronize_buffers(bool has_inputs, BufferHookLocation location);
  void broadcast(const Tensors& tensors, int root) const;

  const Joinable& joinable_;
  std::shared_ptr<torch::nn::Module> module_;
  ProcessGroup group_;
  DistributedDataParallelOptions options_;
  IgnoredNames ignored_;
  std::unique_ptr<DelayedReduction> delayed_;  ///< null without delayed parameters
  std::shared_ptr<Reducer> reducer_;           ///< null in a group of one process, or when all parameters are delayed
  std::shared_ptr<LowPrecision> precision_;    ///< null without mixed_precision
  c10::intrusive_ptr<SinkState> sink_ = c10::make_intrusive<SinkState>();
  BufferHook buffer_hook_;
  BufferHookLocation buffer_hook_location_ = BufferHookLocation::kAfterForward;
  bool moves_inputs_ = false;
  bool has_hook_ = false;
  bool manual_finalization_ = false;
  bool divide_by_initial_world_size_ = true;
  bool keeps_gradients_ = false;  ///< when it stands in for backward
  bool gradient_sync_ = true;
  bool buffer_sync_ = true;  ///< the forward before was one whose gradients were to be reduced
};

}  // namespace taas::detail
