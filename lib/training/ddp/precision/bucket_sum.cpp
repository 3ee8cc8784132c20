#include "training/ddp/precision/bucket_sum.hpp"

#include <ATen/ATen.h>
#include <ATen/core/jit_type.h>

#include <vector>

#include "training/backend/c10_error.hpp"
#include "training/group/process_group_state.hpp"

namespace taas {

GradientFuture average_in_type(const ProcessGroup& group, const at::Tensor& gradients,
                               std::optional<at::ScalarType> type) {
  std::vector<at::Tensor> tensors{gradients.detach().to(type.value_or(gradients.scalar_type()))};
  const auto work = communicating("all_reduce of gradients", [&] { return group.native()->allreduce(tensors); });
  return work->getFuture()->then(
      [sum = tensors.front(), ranks = group.world_size()](c10::ivalue::Future& reduced) {
        reduced.value();  // throws what the communication threw
        sum.div_(ranks);
        return c10::IValue(sum);
      },
      c10::TensorType::get());
}

}  // namespace taas
