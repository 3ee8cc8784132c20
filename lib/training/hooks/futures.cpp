#include "training/hooks/futures.hpp"

#include <ATen/ATen.h>
#include <ATen/core/jit_type.h>

#include "taas/error.hpp"
#include "training/backend/c10_error.hpp"
#include "training/group/process_group_state.hpp"

namespace taas {

GradientFuture pending(const at::Tensor& tensor) {
  std::vector<c10::Device> devices;
  if (tensor.defined() && !tensor.is_cpu()) devices.push_back(tensor.device());
  return c10::make_intrusive<c10::ivalue::Future>(c10::TensorType::get(), std::move(devices));
}

GradientFuture completed(const at::Tensor& tensor) {
  auto future = pending(tensor);
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
  return function_hook("make_comm_hook",
                       [reduce = std::move(reduce)](GradBucket& bucket) { return completed(reduce(bucket)); });
}

}  // namespace taas
