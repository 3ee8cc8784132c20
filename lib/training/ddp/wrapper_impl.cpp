#include "training/ddp/wrapper_impl.hpp"

#include <ATen/ATen.h>

#include <torch/csrc/distributed/c10d/comm.hpp>
#include <utility>

#include "taas/error.hpp"
#include "training/backend/c10_error.hpp"
#include "training/ddp/keep_versions.hpp"
#include "training/ddp/parameter_check.hpp"
#include "training/ddp/reducer_errors.hpp"
#include "training/ddp/wrapper_options.hpp"
#include "training/graph/recording.hpp"
#include "training/group/process_group_state.hpp"
#include "training/join/active_ranks.hpp"
#include "training/join/common_rank.hpp"

namespace taas::detail {
namespace {

constexpr std::size_t kBroadcastBucketBytes = std::size_t{250} << 20;

std::shared_ptr<torch::nn::Module> not_null(std::shared_ptr<torch::nn::Module> module) {
  if (!module) throw InvalidArgument("the module to be wrapped is null: make one, e.g. with std::make_shared");
  return module;
}

std::vector<at::Tensor> values_of(const std::vector<at::Tensor*>& outputs) {
  std::vector<at::Tensor> values;
  for (const auto* output : outputs) {
    if (output->defined()) values.push_back(*output);
  }
  return values;
}

}  // namespace

DataParallelCore::Impl::Impl(const Joinable& joinable, std::shared_ptr<torch::nn::Module> module, ProcessGroup group,
                             const DistributedDataParallelOptions& options)
    : joinable_(joinable),
      module_(not_null(std::move(module))),
      group_(std::move(group)),
      options_(options),
      ignored_(options.parameters_and_buffers_to_ignore.begin(), options.parameters_and_buffers_to_ignore.end()) {
  check_options(*module_, options_);
  const auto& delayed = options_.delay_all_reduce_named_params;
  ignored_.insert(delayed.begin(), delayed.end());
  const auto parameters = trained_parameters(*module_, ignored_);
  if (parameters.empty() && delayed.empty()) {
    throw InvalidArgument("the module has no parameter that needs a gradient: nothing to reduce");
  }
  check_devices(parameters, group_.device());
  moves_inputs_ = !group_.device().is_cpu() && on_one_device(parameters);
  if (!delayed.empty()) delay_parameters();
  if (!parameters.empty()) make_reducer(parameters);
  if (options_.mixed_precision) set_precision(parameters);
}

void DataParallelCore::Impl::delay_parameters() {
  const auto named = module_->named_parameters();
  Tensors delayed;
  for (const auto& name : options_.delay_all_reduce_named_params) delayed.push_back(named[name]);
  delayed_ = std::make_unique<DelayedReduction>(group_, std::move(delayed), named[options_.param_to_hook_all_reduce]);
}

void DataParallelCore::Impl::make_reducer(const std::vector<NamedTensor>& parameters) {
  const auto settings = reducer_options(*module_, options_);
  if (group_.native()) {
    if (options_.init_sync) synchronize_before(parameters);
    reducer_ = std::make_shared<Reducer>(group_, parameters, expect_sparse(*module_, parameters), settings);
    sink_->reducer = reducer_;
    sink_->static_graph = options_.static_graph;
  }
}

void DataParallelCore::Impl::set_precision(const std::vector<NamedTensor>& parameters) {
  precision_ = std::make_shared<LowPrecision>(*module_, ignored_, parameters, *options_.mixed_precision);
  if (reducer_) precision_->attach(reducer_, group_);
}

void DataParallelCore::Impl::synchronize_before(const std::vector<NamedTensor>& parameters) {
  check_same_parameters(group_, parameters);
  broadcast(states(syncs_buffers_at_start(options_)), 0);
}

void DataParallelCore::Impl::before_forward() {
  if (reducer_) start_step();
  if (precision_) precision_->start_forward(gradient_sync_);
}

void DataParallelCore::Impl::start_step() {
  if (recording() && options_.find_unused_parameters) {
    throw InvalidArgument("a step with find_unused_parameters cannot be recorded: what is unused is found on the CPU");
  }
  if (recording() && precision_) {
    throw InvalidArgument("a step with mixed_precision cannot be recorded: use taas::Autocast there");
  }
  const bool training = c10::GradMode::is_enabled();
  if (training && gradient_sync_) reducer_->start_forward();
  if (auto active = count_active_ranks(joinable_)) {
    reducer_->set_active_ranks(std::move(active), divide_by_initial_world_size_);
  }
  if (training) reducer_->rebuild_buckets();
  synchronize_buffers(true, BufferHookLocation::kBeforeForward);
  if (joinable_.in_join()) add_over_ranks(group_, training && gradient_sync_ ? 1 : 0);
}

bool DataParallelCore::Impl::wants_outputs() const {
  if (!reducer_) return false;
  return options_.static_graph ? !sink_->delayed_reduction_queued : options_.find_unused_parameters;
}

void DataParallelCore::Impl::after_forward(const std::vector<at::Tensor*>& outputs) {
  if (reducer_) {
    synchronize_buffers(true, BufferHookLocation::kAfterForward);
    buffer_sync_ = c10::GradMode::is_enabled() && gradient_sync_;
    if (buffer_sync_) reducer_->prepare_for_backward(options_.static_graph ? Tensors() : values_of(outputs));
    if (wants_outputs()) replace_by_sink(outputs);
  }
  if (precision_) precision_->end_forward();
  if (delayed_) delayed_->attach_gradients();
}

void DataParallelCore::Impl::replace_by_sink(const std::vector<at::Tensor*>& outputs) {
  std::vector<at::Tensor*> in_graph;
  for (auto* output : outputs) {
    if (output->defined() && output->grad_fn()) in_graph.push_back(output);
  }
  if (in_graph.empty()) return;
  const auto passed = pass_through_sink(sink_, values_of(in_graph));
  for (std::size_t i = 0; i < passed.size(); ++i) *in_graph[i] = passed[i];
}

void DataParallelCore::Impl::zero_grad() {
  for (auto& parameter : module_->parameters()) parameter.mutable_grad() = at::Tensor();
}

void DataParallelCore::Impl::change_input(at::Tensor& input) const {
  if (!input.defined()) return;
  if (moves_inputs_ && input.device() != group_.device()) input = input.to(group_.device());
  if (precision_) precision_->cast_input(input);
}

void DataParallelCore::Impl::backward(const at::Tensor& loss, const at::Tensor& gradient, bool retain_graph,
                                      bool create_graph) const {
  reducing(options_.static_graph, [&] { loss.backward(gradient, retain_graph, create_graph); });
}

void DataParallelCore::Impl::register_comm_hook(const std::shared_ptr<CommHook>& hook) {
  if (!hook) throw InvalidArgument("the communication hook is null");
  if (!reducer_ && hook->is_needed_alone()) {
    throw InvalidArgument(hook->name() + " does not run in a group of one process: do its work after backward there");
  }
  register_once(hook);
}

void DataParallelCore::Impl::claim_hook() {
  if (precision_) throw InvalidArgument("mixed_precision reduces gradients with a hook of its own: leave one out");
  if (!std::exchange(has_hook_, true)) return;
  throw InvalidArgument("this model has a communication hook already");
}

void DataParallelCore::Impl::register_buffer_hook(BufferHook hook, BufferHookLocation location) {
  if (!hook) throw InvalidArgument("the buffer hook is empty");
  buffer_hook_ = std::move(hook);
  buffer_hook_location_ = location;
}

void DataParallelCore::Impl::set_static_graph() {
  if (std::exchange(options_.static_graph, true)) return;
  sink_->static_graph = true;
  if (reducer_) reducer_->set_static_graph();
}

void DataParallelCore::Impl::update_process_group(const ProcessGroup& group) {
  if (!group.native()) {
    throw InvalidArgument("a group of one process communicates nothing: wrap the module anew for it");
  }
  if (!reducer_) throw InvalidArgument("this model reduces nothing: wrap the module anew for another group");
  reducer_->use_group(group);
  if (delayed_) delayed_->use_group(group);
  if (precision_) precision_->use_group(group);
  group_ = group;
}

void DataParallelCore::Impl::remove_autograd_hooks() {
  if (precision_) throw InvalidArgument("mixed_precision needs the hooks of autograd: wrap the module anew without it");
  if (reducer_) reducer_->remove_autograd_hooks();
}

void DataParallelCore::Impl::require_manual_finalization(bool required) {
  if (reducer_) reducer_->require_manual_finalization(required);
  manual_finalization_ = required;
}

bool DataParallelCore::Impl::should_finalize_after_backward() const {
  return reducer_ && (reducer_->should_finalize_after_backward() || (precision_ && manual_finalization_));
}

void DataParallelCore::Impl::finalize_backward() {
  if (reducer_) reducer_->finalize();
  if (precision_) precision_->finish_gradients();
}

void DataParallelCore::Impl::start_join(const JoinOptions& options) {
  if (precision_) throw InvalidArgument("mixed_precision does not go together with a join: use taas::Autocast there");
  divide_by_initial_world_size_ = options.divide_by_initial_world_size;
  if (reducer_) reducer_->note_join();
}

void DataParallelCore::Impl::leave_join() {
  keeps_gradients_ = false;
  if (reducer_) reducer_->set_active_ranks(nullptr, true);
}

void DataParallelCore::Impl::shadow_iteration() {
  if (!reducer_) return;
  reducer_->rebuild_buckets();
  synchronize_buffers(false, BufferHookLocation::kBeforeForward);
  buffer_sync_ = sum_over_ranks(group_, 0) > 0;  // in a scope of no_sync nobody reduces
  if (!buffer_sync_) return;
  reducer_->shadow_backward(group_, options_.find_unused_parameters && !options_.static_graph, keeps_gradients_);
}

void DataParallelCore::Impl::become_model_of_last(bool is_last_joiner) {
  if (reducer_) broadcast(states(syncs_buffers_in_forward(options_)), common_rank(group_, is_last_joiner));
}

DataParallelCore::Impl::Tensors DataParallelCore::Impl::states(bool with_buffers) const {
  Tensors states;
  for (const auto& [name, parameter] : named_parameters_of(*module_, ignored_)) states.push_back(parameter.detach());
  if (!with_buffers) return states;
  for (const auto& [name, buffer] : named_buffers_of(*module_, ignored_)) states.push_back(buffer.detach());
  return states;
}

/// The broadcast takes place before forward.
bool DataParallelCore::Impl::runs_buffer_hook(BufferHookLocation location) const {
  return location == (buffer_hook_ ? buffer_hook_location_ : BufferHookLocation::kBeforeForward);
}

/// Collected anew each time: a module may have replaced its buffers. In a join rank 0 may be through already, with old
/// ones: they are those of the last rank that has inputs.
void DataParallelCore::Impl::synchronize_buffers(bool has_inputs, BufferHookLocation location) {
  if (!buffer_sync_ || !syncs_buffers_in_forward(options_) || !runs_buffer_hook(location)) return;
  const auto named = named_buffers_of(*module_, ignored_);
  if (named.empty()) return;
  at::NoGradGuard no_grad;
  const auto buffers = tensors_of(named);
  KeepVersions versions(buffers);
  const int root = joinable_.in_join() ? common_rank(group_, has_inputs) : 0;
  if (!buffer_hook_) return broadcast(buffers, root);
  const auto futures = buffer_hook_(named);
  if (!futures.empty()) reducer_->wait_in_backward(futures);
}

void DataParallelCore::Impl::broadcast(const Tensors& tensors, int root) const {
  communicating("broadcast of parameters and buffers",
                [&] { c10d::broadcast_coalesced(group_.state().group, tensors, kBroadcastBucketBytes, root); });
}

}  // namespace taas::detail
