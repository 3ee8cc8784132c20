#include "training/ddp/low_precision.hpp"

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <unordered_map>
#include <utility>

#include "training/group/process_group_state.hpp"

namespace taas {
namespace {

using torch::autograd::Engine;
using torch::autograd::variable_list;

std::unordered_map<const at::TensorImpl*, std::size_t> places(const std::vector<NamedTensor>& parameters) {
  std::unordered_map<const at::TensorImpl*, std::size_t> places;
  for (std::size_t i = 0; i < parameters.size(); ++i) places[parameters[i].second.unsafeGetTensorImpl()] = i;
  return places;
}

/// The work of a stream of its own, on a GPU; on the CPU that of the calling thread.
class SideStream {
 public:
  explicit SideStream(c10::Device device) : device_(device) {
    if (device.is_cpu()) return;
    const c10::impl::VirtualGuardImpl guard(device.type());
    stream_ = guard.getStreamFromGlobalPool(device);
  }
  template <class Call>
  void run(Call&& call) const {
    if (!stream_) return call();
    const c10::StreamGuard on_stream(*stream_);
    call();
  }
  /// The current stream goes on when this one is through.
  void join() const {
    if (!stream_) return;
    const c10::impl::VirtualGuardImpl guard(device_.type());
    c10::Event event(device_.type());
    event.record(*stream_);
    event.block(guard.getStream(device_));
  }
  std::vector<c10::Device> devices() const {
    return stream_ ? std::vector<c10::Device>{device_} : std::vector<c10::Device>{};
  }

 private:
  c10::Device device_;
  std::optional<c10::Stream> stream_ = std::nullopt;
};

}  // namespace

/// Sums a bucket in the type for that, divides, and gives the parameters their full precision back.
class LowPrecision::SumHook : public c10d::CommHookInterface {
 public:
  SumHook(std::weak_ptr<LowPrecision> owner, const ProcessGroup& group)
      : owner_(std::move(owner)), group_(group), stream_(group.device()) {}

  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    const auto owner = owner_.lock();
    TORCH_CHECK(owner, "the model of this gradient is gone");
    bucket.getBufferRef() = bucket.getBuffer().to(owner->reduce_dtype_);
    auto sum = owner->reducer_->native().run_allreduce_hook(bucket);
    auto result = c10::make_intrusive<c10::ivalue::Future>(c10::TensorType::get(), stream_.devices());
    stream_.run([&] {
      sum->waitAndThrow();
      bucket.getBufferRef().div_(group_.world_size());
      result->markCompleted(bucket.getBufferRef());
      owner->raise_bucket(bucket.getParameters());
    });
    queue_end(owner);
    return result;
  }

  at::Tensor parseHookResult(const c10::IValue& result) override {
    return c10d::detail::parseCppCommHookResult(result);
  }

  void use_group(const ProcessGroup& group) { group_ = group; }
  void backward_ended() { queued_ = false; }

 private:
  void queue_end(const std::shared_ptr<LowPrecision>& owner) {
    if (std::exchange(queued_, true)) return;
    Engine::get_default_engine().queue_callback([owner, stream = stream_] {
      stream.join();
      owner->end_backward();
    });
  }

  std::weak_ptr<LowPrecision> owner_;
  ProcessGroup group_;
  SideStream stream_;
  bool queued_ = false;
};

namespace {

/// The reducer owns its hook; the wrapper needs it, too.
template <class Hook>
class SharedHook : public c10d::CommHookInterface {
 public:
  explicit SharedHook(std::shared_ptr<Hook> hook) : hook_(std::move(hook)) {}
  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override { return hook_->runHook(bucket); }
  at::Tensor parseHookResult(const c10::IValue& result) override { return hook_->parseHookResult(result); }

 private:
  std::shared_ptr<Hook> hook_;
};

}  // namespace

LowPrecision::LowPrecision(const torch::nn::Module& module, const IgnoredNames& ignored,
                           const std::vector<NamedTensor>& trained, const MixedPrecision& settings)
    : param_dtype_(settings.param_dtype.value()), reduce_dtype_(settings.reduce_dtype.value_or(param_dtype_)) {
  const auto indices = places(trained);
  for (const auto& [name, parameter] : named_parameters_of(module, ignored)) {
    const auto found = indices.find(parameter.unsafeGetTensorImpl());
    auto& lowered = parameters_.emplace_back();
    lowered.parameter = parameter;
    lowered.full = parameter.detach();
    if (found != indices.end()) lowered.reducer_index = found->second;
  }
  if (!settings.buffer_dtype) return;
  for (auto [name, buffer] : named_buffers_of(module, ignored)) buffer.set_data(buffer.to(*settings.buffer_dtype));
}

LowPrecision::~LowPrecision() {
  for (auto& lowered : parameters_) unwatch(lowered);
}

void LowPrecision::attach(const std::shared_ptr<Reducer>& reducer, const ProcessGroup& group) {
  reducer_ = reducer;
  hook_ = std::make_shared<SumHook>(weak_from_this(), group);
  reducer_->native().register_comm_hook(std::make_unique<SharedHook<SumHook>>(hook_));
  reducer_->native().set_mixed_precision_param_dtype(param_dtype_);
}

void LowPrecision::use_group(const ProcessGroup& group) {
  if (hook_) hook_->use_group(group);
}

void LowPrecision::lower() {
  for (auto& lowered : parameters_) {
    auto& parameter = lowered.parameter;
    if (parameter.scalar_type() == param_dtype_) {  // of an earlier forward of the same iteration
      watch(lowered);
      continue;
    }
    parameter.set_data(lowered.full.to(param_dtype_));
    auto& gradient = parameter.mutable_grad();
    if (gradient.defined()) gradient = gradient.to(param_dtype_);
    watch(lowered);
  }
}

void LowPrecision::raise() {
  const bool backward_follows = std::any_of(parameters_.begin(), parameters_.end(),
                                            [](const Lowered& lowered) { return lowered.accumulator != nullptr; });
  if (backward_follows) return;
  for (auto& lowered : parameters_) lowered.parameter.set_data(lowered.full);
}

void LowPrecision::cast_input(at::Tensor& input) const {
  if (input.defined() && input.is_floating_point()) input = input.to(param_dtype_);
}

/// A new type has a new node that gathers the gradient, which the reducer does not know.
void LowPrecision::watch(Lowered& lowered) {
  if (!lowered.reducer_index || !reducer_ || !c10::GradMode::is_enabled()) return;
  auto accumulator = torch::autograd::impl::grad_accumulator(lowered.parameter);
  if (accumulator.get() == lowered.accumulator.get()) return;
  unwatch(lowered);
  auto tell = [reducer = reducer_.get(), index = *lowered.reducer_index](const variable_list& outputs,
                                                                         const variable_list&) {
    reducer->native().autograd_hook(index);
    return outputs;
  };
  lowered.hook = accumulator->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(std::move(tell)));
  lowered.accumulator = std::move(accumulator);
}

void LowPrecision::unwatch(Lowered& lowered) {
  if (!lowered.accumulator) return;
  lowered.accumulator->del_post_hook(lowered.hook);
  lowered.accumulator.reset();
}

void LowPrecision::raise_bucket(const std::vector<at::Tensor>& parameters) {
  std::unordered_map<const at::TensorImpl*, Lowered*> known;
  for (auto& lowered : parameters_) known[lowered.parameter.unsafeGetTensorImpl()] = &lowered;
  for (auto parameter : parameters) {
    auto& lowered = *known.at(parameter.unsafeGetTensorImpl());
    parameter.set_data(lowered.full);
    auto& gradient = parameter.mutable_grad();
    if (gradient.defined()) gradient.set_data(gradient.to(lowered.full.scalar_type()));
  }
}

void LowPrecision::end_backward() {
  for (auto& lowered : parameters_) {
    unwatch(lowered);
    if (!lowered.reducer_index) lowered.parameter.set_data(lowered.full);
  }
  hook_->backward_ended();
}

}  // namespace taas
