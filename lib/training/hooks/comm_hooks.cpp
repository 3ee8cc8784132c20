#include "taas/comm_hooks.hpp"

#include <ATen/ATen.h>
#include <ATen/core/jit_type.h>

#include <torch/csrc/distributed/c10d/comm.hpp>

#include "taas/error.hpp"
#include "training/backend/c10_error.hpp"
#include "training/group/process_group_state.hpp"

namespace taas {
namespace {

/// A hook that is a function of the bucket.
class FunctionHook : public CommHook {
 public:
  using Function = std::function<GradientFuture(GradBucket&)>;

  FunctionHook(std::string name, Function function) : name_(std::move(name)), function_(std::move(function)) {}
  GradientFuture run(GradBucket& bucket) override { return function_(bucket); }
  std::string name() const override { return name_; }

 private:
  std::string name_;
  Function function_;
};

std::shared_ptr<CommHook> compress_hook(std::string name, ProcessGroup group, at::ScalarType type) {
  return std::make_shared<FunctionHook>(std::move(name), [group = std::move(group), type](GradBucket& bucket) {
    const auto buffer = bucket.buffer();
    return then(all_reduce_average(group, buffer.to(type)),
                [buffer](const at::Tensor& compressed) { return buffer.copy_(compressed); });
  });
}

}  // namespace

std::size_t GradBucket::index() const { return bucket_->getIndex(); }
bool GradBucket::is_last() const { return bucket_->isLast(); }
at::Tensor GradBucket::buffer() const { return bucket_->getBuffer(); }
void GradBucket::set_buffer(at::Tensor buffer) { bucket_->setBuffer(buffer); }
std::vector<at::Tensor> GradBucket::gradients() const { return bucket_->getGradients(); }
std::vector<at::Tensor> GradBucket::parameters() const { return bucket_->getParameters(); }

GradientFuture completed(const at::Tensor& tensor) {
  std::vector<c10::Device> devices;
  if (tensor.defined() && !tensor.is_cpu()) devices.push_back(tensor.device());
  auto future = c10::make_intrusive<c10::ivalue::Future>(c10::TensorType::get(), std::move(devices));
  future->markCompleted(tensor);
  return future;
}

GradientFuture all_reduce_average(const ProcessGroup& group, const at::Tensor& tensor) {
  tensor.div_(group.world_size());
  if (!group.native()) return completed(tensor);
  std::vector<at::Tensor> tensors{tensor};
  const auto work = communicating("all_reduce of gradients", [&] { return group.native()->allreduce(tensors); });
  return work->getFuture()->then(
      [tensor](c10::ivalue::Future& reduced) {
        reduced.value();  // throws what the communication threw
        return c10::IValue(tensor);
      },
      c10::TensorType::get());
}

GradientFuture then(const GradientFuture& future, std::function<at::Tensor(at::Tensor)> next) {
  if (!future) throw InvalidArgument("then: the future is null: give that of a communication, or completed(tensor)");
  return future->then(
      [next = std::move(next)](c10::ivalue::Future& ready) {
        const auto value = ready.value();
        return c10::IValue(next(value.isTensor() ? value.toTensor() : value.toTensorVector().front()));
      },
      c10::TensorType::get());
}

std::shared_ptr<CommHook> make_comm_hook(std::function<at::Tensor(GradBucket&)> reduce) {
  return std::make_shared<FunctionHook>(
      "make_comm_hook", [reduce = std::move(reduce)](GradBucket& bucket) { return completed(reduce(bucket)); });
}

std::shared_ptr<CommHook> fp16_compress_hook(ProcessGroup group) {
  return compress_hook("fp16_compress_hook", std::move(group), at::kHalf);
}

std::shared_ptr<CommHook> bf16_compress_hook(ProcessGroup group) {
  return compress_hook("bf16_compress_hook", std::move(group), at::kBFloat16);
}

}  // namespace taas
