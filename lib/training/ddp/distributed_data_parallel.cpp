#include "taas/distributed_data_parallel.hpp"

#include <ATen/ATen.h>
#include <c10/util/Type.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/custom_class.h>

#include <string>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <torch/csrc/distributed/c10d/logger.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <utility>

#include "taas/error.hpp"
#include "training/backend/c10_error.hpp"
#include "training/ddp/module_tensors.hpp"
#include "training/ddp/reducer.hpp"
#include "training/group/process_group_state.hpp"
#include "training/hooks/comm_hook_adapter.hpp"

namespace taas::detail {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::size_t kBroadcastBucketBytes = std::size_t{250} << 20;
constexpr const char* kSink = "sink";

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

void add_values(std::vector<at::Tensor>& to, const torch::OrderedDict<std::string, at::Tensor>& named) {
  for (const auto& item : named) {
    if (item.value().defined()) to.push_back(item.value().detach());
  }
}

/// Writing to a buffer in place would make backward refuse graphs that used it before; what is written belongs to the
/// next forward, so the versions stay.
class KeepVersions {
 public:
  explicit KeepVersions(const std::vector<at::Tensor>& tensors) : tensors_(tensors) {
    for (const auto& tensor : tensors_) versions_.push_back(tensor._version());
  }
  ~KeepVersions() {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      auto counter = tensors_[i].unsafeGetTensorImpl()->version_counter();  // shared with the tensor
      counter.set_version(versions_[i]);
    }
  }
  KeepVersions(const KeepVersions&) = delete;
  KeepVersions& operator=(const KeepVersions&) = delete;

 private:
  const std::vector<at::Tensor>& tensors_;
  std::vector<std::int64_t> versions_;
};

}  // namespace

/// What backward has to know when it begins. A graph may outlive the wrapper.
struct BackwardSink : torch::CustomClassHolder {
  std::shared_ptr<c10d::Reducer> reducer;
  std::shared_ptr<c10d::Logger> logger;  ///< the reducer's
  bool static_graph = false;
  bool delayed_reduction_queued = false;  ///< static graph: done once, in the first backward
};

namespace {

/// A node of the graph where backward begins. It leaves the gradient of an output that is not part of the loss
/// undefined, not zero, so that the reducer can tell; and it queues the first reduction of a static graph. Outputs are
/// copied, as they may be changed in place.
class SinkNode : public torch::autograd::Function<SinkNode> {
 public:
  static variable_list forward(AutogradContext* context, const c10::intrusive_ptr<BackwardSink>& sink,
                               at::TensorList outputs) {
    context->set_materialize_grads(false);
    context->saved_data[kSink] = c10::IValue::make_capsule(sink);
    variable_list passed;
    for (const auto& output : outputs) passed.push_back(output.clone());
    return passed;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto sink = c10::static_intrusive_pointer_cast<BackwardSink>(context->saved_data[kSink].toCapsule());
    if (sink->static_graph && !std::exchange(sink->delayed_reduction_queued, true)) {
      torch::autograd::Engine::get_default_engine().queue_callback(
          [reducer = sink->reducer] { reducing(true, [&] { reducer->delay_all_reduce(); }); });
    }
    variable_list results{at::Tensor()};  // for `sink`
    results.insert(results.end(), gradients.begin(), gradients.end());
    return results;
  }
};

}  // namespace

DataParallel::DataParallel(std::shared_ptr<torch::nn::Module> module, ProcessGroup group,
                           const DistributedDataParallelOptions& options)
    : module_(not_null(std::move(module))),
      group_(std::move(group)),
      options_(options),
      syncs_buffers_(options.forward_sync_buffers.value_or(options.broadcast_buffers)),
      sink_(c10::make_intrusive<BackwardSink>()) {
  const auto parameters = trained_parameters(*module_);
  if (parameters.empty()) {
    throw InvalidArgument("the module has no parameter that needs a gradient: nothing to reduce");
  }
  check_devices(parameters, group_.device());
  check_bucket_limits(options_);
  moves_inputs_ = !group_.device().is_cpu() && on_one_device(parameters);
  if (!group_.native()) return;
  if (options_.init_sync) {
    check_same_parameters(group_, parameters);
    Tensors states;
    add_values(states, module_->named_parameters());
    if (options_.forward_sync_buffers.has_value() || options_.broadcast_buffers)
      add_values(states, module_->named_buffers());
    broadcast(states);
  }
  auto built = build_reducer(group_, *module_, parameters, options_);
  reducer_ = std::move(built.reducer);
  logger_ = std::move(built.logger);
  sink_->reducer = reducer_;
  sink_->logger = logger_;
  sink_->static_graph = options_.static_graph;
}
DataParallel::~DataParallel() = default;

void DataParallel::before_forward() {
  if (!reducer_) return;
  if (c10::GradMode::is_enabled()) {
    if (gradient_sync_) reducer_->prepare_for_forward();
    reducing(options_.static_graph, [&] { reducer_->rebuild_buckets(); });
  }
  synchronize_buffers();
}

bool DataParallel::wants_outputs() const {
  if (!reducer_) return false;
  return options_.static_graph ? !sink_->delayed_reduction_queued : options_.find_unused_parameters;
}

void DataParallel::after_forward(const std::vector<at::Tensor*>& outputs) {
  if (!reducer_) return;
  buffer_sync_ = c10::GradMode::is_enabled() && gradient_sync_;
  if (buffer_sync_) {
    if (hook_) hook_->begin_backward();
    reducing(options_.static_graph,
             [&] { reducer_->prepare_for_backward(options_.static_graph ? Tensors() : values_of(outputs)); });
  }
  if (wants_outputs()) replace_by_sink(outputs);
}

void DataParallel::replace_by_sink(const std::vector<at::Tensor*>& outputs) {
  std::vector<at::Tensor*> in_graph;
  for (auto* output : outputs) {
    if (output->defined() && output->grad_fn()) in_graph.push_back(output);
  }
  if (in_graph.empty()) return;
  const auto values = values_of(in_graph);
  const auto passed = SinkNode::apply(sink_, at::TensorList(values));  // a vector is not searched for tensors
  for (std::size_t i = 0; i < passed.size(); ++i) *in_graph[i] = passed[i];
}

void DataParallel::zero_grad() {
  for (auto& parameter : module_->parameters()) parameter.mutable_grad() = at::Tensor();
}

void DataParallel::move_input(at::Tensor& input) const {
  if (input.defined() && input.device() != group_.device()) input = input.to(group_.device());
}

void DataParallel::backward(const at::Tensor& loss, const at::Tensor& gradient, bool retain_graph,
                            bool create_graph) const {
  reducing(options_.static_graph, [&] { loss.backward(gradient, retain_graph, create_graph); });
}

void DataParallel::register_comm_hook(const std::shared_ptr<CommHook>& hook) {
  if (!hook) throw InvalidArgument("the communication hook is null");
  if (std::exchange(has_hook_, true)) throw InvalidArgument("this model has a communication hook already");
  if (!reducer_) return;
  logger_->set_comm_hook(hook->name());
  auto adapter = std::make_unique<CommHookAdapter>(hook);
  auto* registered = adapter.get();
  reducing(options_.static_graph, [&] { reducer_->register_comm_hook(std::move(adapter)); });
  hook_ = registered;
}

/// Collected anew each time: a module may have replaced its buffers.
void DataParallel::synchronize_buffers() const {
  if (!buffer_sync_ || !syncs_buffers_) return;
  Tensors buffers;
  add_values(buffers, module_->named_buffers());
  if (buffers.empty()) return;
  const at::NoGradGuard no_grad;
  const KeepVersions versions(buffers);
  broadcast(buffers);
}

void DataParallel::broadcast(const Tensors& tensors) const {
  communicating("broadcast of parameters and buffers",
                [&] { c10d::broadcast_coalesced(group_.state().group, tensors, kBroadcastBucketBytes); });
}

void DataParallel::refuse_output_type(std::string_view type) {
  throw InvalidArgument("forward returns a " + c10::demangle(std::string(type).c_str()) +
                        ", in which no tensors can be found: give it a visit_tensors member (taas/output_tensors.hpp)");
}

}  // namespace taas::detail
