#include "training/join/kept_gradients.hpp"

#include <ATen/ATen.h>

namespace taas {

void keep_gradients(const at::Tensor& average, const std::vector<at::Tensor>& parameters) {
  at::NoGradGuard no_grad;
  if (average.is_sparse()) {
    parameters.front().mutable_grad() = average;
    return;
  }
  const auto flat = average.view(-1);
  std::int64_t offset = 0;
  for (const auto& parameter : parameters) {
    const auto begin = flat.storage_offset() + offset;
    parameter.mutable_grad() = parameter.is_non_overlapping_and_dense()
                                   ? flat.as_strided(parameter.sizes(), parameter.strides(), begin)
                                   : flat.narrow(0, offset, parameter.numel()).view(parameter.sizes());
    offset += parameter.numel();
  }
}

}  // namespace taas
