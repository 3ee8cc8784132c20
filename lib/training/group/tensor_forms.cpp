#include "training/group/tensor_forms.hpp"

#include <ATen/ATen.h>

namespace taas {

at::Tensor resolved(const at::Tensor& input) { return input.detach().resolve_conj().resolve_neg(); }

at::Tensor as_bytes(const at::Tensor& tensor) { return tensor.detach().reshape(-1).view(at::kByte); }

at::Tensor reducible(const at::Tensor& tensor) {
  auto plain = tensor.detach();
  return plain.is_complex() ? at::view_as_real(plain) : plain;
}

bool divides_first(const at::Tensor& tensor, ReduceOp op) {
  const auto type = c10::toRealValueType(tensor.scalar_type());
  return op == ReduceOp::kAverage && (type == at::kHalf || type == at::kBFloat16);
}

}  // namespace taas
