#include "taas/distributed_data_parallel.hpp"

#include <ATen/ATen.h>
#include <c10/util/Type.h>
#include <torch/nn/modules/embedding.h>

#include <algorithm>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <unordered_set>

#include "taas/error.hpp"
#include "training/backend/c10_error.hpp"
#include "training/ddp/backward_sink.hpp"
#include "training/ddp/keep_versions.hpp"
#include "training/ddp/parameter_check.hpp"
#include "training/ddp/reducer.hpp"
#include "training/graph/recording.hpp"
#include "training/group/process_group_state.hpp"
#include "training/join/common_rank.hpp"

namespace taas::detail {
namespace {

using torch::nn::Module;

constexpr std::int64_t kMiB = 1024 * 1024;
constexpr double kDefaultBucketMiB = 25;
constexpr std::int64_t kFirstBucketBytes = kMiB;
constexpr std::size_t kBroadcastBucketBytes = 250 * kMiB;

/// Each once, by its first name, in the order of definition: what Python's wrapper gives its reducer.
std::vector<NamedTensor> trained_parameters(const Module& module) {
  std::vector<NamedTensor> parameters;
  std::unordered_set<const at::TensorImpl*> seen;
  for (const auto& item : module.named_parameters()) {
    if (item.value().requires_grad() && seen.insert(item.value().unsafeGetTensorImpl()).second) {
      parameters.emplace_back(item.key(), item.value());
    }
  }
  return parameters;
}

std::vector<bool> expect_sparse(const Module& module, const std::vector<NamedTensor>& parameters) {
  std::unordered_set<const at::TensorImpl*> sparse;
  for (const auto& part : module.modules()) {
    const auto* embedding = part->as<torch::nn::EmbeddingImpl>();
    if (embedding && embedding->options.sparse()) sparse.insert(embedding->weight.unsafeGetTensorImpl());
    const auto* bag = part->as<torch::nn::EmbeddingBagImpl>();
    if (bag && bag->options.sparse()) sparse.insert(bag->weight.unsafeGetTensorImpl());
  }
  std::vector<bool> expected;
  for (const auto& [name, tensor] : parameters) expected.push_back(sparse.contains(tensor.unsafeGetTensorImpl()));
  return expected;
}

std::vector<at::Tensor> defined(std::vector<at::Tensor> tensors) {
  std::erase_if(tensors, [](const at::Tensor& tensor) { return !tensor.defined(); });
  return tensors;
}

/// Parameters are on the group's device, or spread over several of its kind: the reducer's buckets are of one device
/// each.
void check_module(const std::vector<NamedTensor>& parameters, c10::Device group_device) {
  if (parameters.empty()) throw InvalidArgument("the module has no parameter that needs a gradient: nothing to reduce");
  const auto first = parameters.front().second.device();
  const bool several = std::any_of(parameters.begin(), parameters.end(),
                                   [&](const NamedTensor& named) { return named.second.device() != first; });
  for (const auto& [name, tensor] : parameters) {
    const auto device = tensor.device();
    if (several ? device.type() == group_device.type() : device == group_device) continue;
    throw InvalidArgument("parameter " + name + " is on " + device.str() + " but this group works on " +
                          group_device.str() +
                          (several ? ": a module on several devices has to be on devices of that kind alone"
                                   : ": move the module there first, with module->to(group.device())"));
  }
}

ReducerOptions reducer_options(const DistributedDataParallelOptions& options) {
  const double cap = options.bucket_cap_mb.value_or(kDefaultBucketMiB);
  if (!(cap > 0)) throw InvalidArgument("bucket_cap_mb must be above 0, not " + std::to_string(cap));
  ReducerOptions result;
  result.bucket_bytes = static_cast<std::int64_t>(cap * static_cast<double>(kMiB));
  result.first_bucket_bytes = options.bucket_cap_mb ? result.bucket_bytes : kFirstBucketBytes;
  result.find_unused_parameters = options.find_unused_parameters;
  result.static_graph = options.static_graph;
  result.gradient_as_bucket_view = options.gradient_as_bucket_view;
  result.broadcast_buffers = options.broadcast_buffers;
  return result;
}

}  // namespace

class DataParallelCore::Impl {
 public:
  Impl(const Joinable& joinable, std::shared_ptr<Module> module, ProcessGroup group,
       const DistributedDataParallelOptions& options)
      : joinable_(joinable), module_(std::move(module)), group_(std::move(group)), options_(options) {
    const auto parameters = trained_parameters(*module_);
    const auto reducer_settings = reducer_options(options);
    check_module(parameters, group_.device());
    if (!group_.native()) return;
    if (options.init_sync) synchronize(parameters);
    reducer_ = std::make_shared<Reducer>(group_, parameters, expect_sparse(*module_, parameters), reducer_settings);
    sink_->reducer = reducer_;
    sink_->static_graph = options.static_graph;
  }

  void before_forward() {
    if (!reducer_) return;
    if (recording() && options_.find_unused_parameters) {
      throw InvalidArgument(
          "a step with find_unused_parameters cannot be recorded: what is unused is found on the CPU");
    }
    const bool training = c10::GradMode::is_enabled();
    if (training && gradient_sync_) reducer_->start_forward();
    if (auto active = Join::notify_join_context(joinable_)) {
      reducer_->set_active_ranks(std::move(active), divide_by_initial_world_size_);
    }
    if (training) reducer_->rebuild_buckets();
    if (options_.broadcast_buffers && buffer_sync_) synchronize_buffers(true);
    if (joinable_.in_join()) sum_over_ranks(group_, gradient_sync_ ? 1 : 0);
  }

  bool wants_outputs() const {
    if (!reducer_) return false;
    return options_.static_graph ? !sink_->delayed_reduction_queued : options_.find_unused_parameters;
  }

  void after_forward(const std::vector<at::Tensor*>& outputs) {
    if (!reducer_) return;
    buffer_sync_ = c10::GradMode::is_enabled() && gradient_sync_;
    if (buffer_sync_) reducer_->prepare_for_backward(options_.static_graph ? Tensors() : values_of(outputs));
    if (wants_outputs()) replace_by_sink(outputs);
  }

  void zero_grad() {
    for (auto& parameter : module_->parameters()) parameter.mutable_grad() = at::Tensor();
  }

  bool set_gradient_sync(bool sync) { return std::exchange(gradient_sync_, sync); }

  void register_comm_hook(const std::shared_ptr<CommHook>& hook) {
    if (!hook) throw InvalidArgument("the communication hook is null");
    if (!reducer_ && hook->is_needed_alone()) {
      throw InvalidArgument(hook->name() + " does not run in a group of one process: do its work after backward there");
    }
    register_once(hook);
  }

  template <class Hook>
  void register_once(const Hook& hook) {
    if (std::exchange(has_hook_, true)) throw InvalidArgument("this model has a communication hook already");
    if (reducer_) reducer_->register_comm_hook(hook);
  }

  void start_join(const JoinOptions& options) { divide_by_initial_world_size_ = options.divide_by_initial_world_size; }

  void leave_join() {
    if (reducer_) reducer_->set_active_ranks(nullptr, true);
  }

  /// Takes part in what forward and backward of the other ranks communicate.
  void shadow_iteration() {
    if (!reducer_) return;
    reducer_->rebuild_buckets();
    if (options_.broadcast_buffers && buffer_sync_) synchronize_buffers(false);
    buffer_sync_ = sum_over_ranks(group_, 0) > 0;  // no rank reduces in a scope of no_sync
    if (!buffer_sync_) return;
    reducer_->shadow_backward(group_, options_.find_unused_parameters && !options_.static_graph);
  }

  void become_model_of_last(bool is_last_joiner) {
    if (reducer_) broadcast(states(), common_rank(group_, is_last_joiner));
  }

  const ProcessGroup& group() const { return group_; }

 private:
  using Tensors = std::vector<at::Tensor>;

  static Tensors values_of(const std::vector<at::Tensor*>& outputs) {
    Tensors values;
    for (const auto* output : outputs) {
      if (output->defined()) values.push_back(*output);
    }
    return values;
  }

  void replace_by_sink(const std::vector<at::Tensor*>& outputs) {
    std::vector<at::Tensor*> in_graph;
    for (auto* output : outputs) {
      if (output->defined() && output->grad_fn()) in_graph.push_back(output);
    }
    if (in_graph.empty()) return;
    const auto passed = pass_through_sink(sink_, values_of(in_graph));
    for (std::size_t i = 0; i < passed.size(); ++i) *in_graph[i] = passed[i];
  }

  void synchronize(const std::vector<NamedTensor>& parameters) {
    check_same_parameters(group_, parameters);
    broadcast(states(), 0);
  }

  Tensors states() const {
    Tensors states;
    for (const auto& parameter : module_->parameters()) states.push_back(parameter.detach());
    if (options_.broadcast_buffers) {
      for (const auto& buffer : defined(module_->buffers())) states.push_back(buffer.detach());
    }
    return states;
  }

  /// Collected anew each time: a module may have replaced its buffers. In a join rank 0 may be through already, with
  /// old ones: they are those of the last rank that has inputs.
  void synchronize_buffers(bool has_inputs) {
    const auto buffers = defined(module_->buffers());
    if (buffers.empty()) return;
    at::NoGradGuard no_grad;
    KeepVersions versions(buffers);
    broadcast(buffers, joinable_.in_join() ? common_rank(group_, has_inputs) : 0);
  }

  void broadcast(const Tensors& tensors, int root) {
    communicating("broadcast of parameters and buffers",
                  [&] { c10d::broadcast_coalesced(group_.state().group, tensors, kBroadcastBucketBytes, root); });
  }

  const Joinable& joinable_;
  std::shared_ptr<Module> module_;
  ProcessGroup group_;
  DistributedDataParallelOptions options_;
  std::shared_ptr<Reducer> reducer_;  ///< null in a group of one process
  c10::intrusive_ptr<SinkState> sink_ = c10::make_intrusive<SinkState>();
  bool has_hook_ = false;
  bool divide_by_initial_world_size_ = true;
  bool gradient_sync_ = true;
  bool buffer_sync_ = true;  ///< the forward before was one whose gradients were to be reduced
};

DataParallelCore::DataParallelCore(std::shared_ptr<Module> module, ProcessGroup group,
                                   const DistributedDataParallelOptions& options)
    : impl_(std::make_unique<Impl>(*this, std::move(module), std::move(group), options)) {}
DataParallelCore::~DataParallelCore() = default;

void DataParallelCore::before_forward() { impl_->before_forward(); }
bool DataParallelCore::wants_outputs() const { return impl_->wants_outputs(); }
void DataParallelCore::after_forward(const std::vector<at::Tensor*>& outputs) { impl_->after_forward(outputs); }
void DataParallelCore::zero_grad() { impl_->zero_grad(); }
bool DataParallelCore::set_gradient_sync(bool sync) { return impl_->set_gradient_sync(sync); }

void DataParallelCore::register_comm_hook(const std::shared_ptr<CommHook>& hook) { impl_->register_comm_hook(hook); }
void DataParallelCore::register_comm_hook(BuiltinCommHook hook) { impl_->register_once(hook); }

class DataParallelCore::ShadowHook : public JoinHook {
 public:
  explicit ShadowHook(Impl& impl) : impl_(impl) {}
  void main_hook() override { impl_.shadow_iteration(); }
  void post_hook(bool is_last_joiner) override { impl_.become_model_of_last(is_last_joiner); }

 private:
  Impl& impl_;
};

std::unique_ptr<JoinHook> DataParallelCore::join_hook(const JoinOptions& options) {
  impl_->start_join(options);
  return std::make_unique<ShadowHook>(*impl_);
}
const ProcessGroup& DataParallelCore::join_process_group() const { return impl_->group(); }
void DataParallelCore::leave_join() { impl_->leave_join(); }

void DataParallelCore::refuse_output_type(std::string_view type) {
  throw InvalidArgument("forward returns a " + c10::demangle(std::string(type).c_str()) +
                        ", in which no tensors can be found: give it a visit_tensors member (taas/output_tensors.hpp)");
}

}  // namespace taas::detail
