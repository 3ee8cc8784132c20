#pragma once

#include <ATen/core/Tensor.h>

#include "taas/collectives.hpp"

namespace taas {

// The forms in which tensors are communicated: backends know few types, and what is only moved needs none.

/// Without a gradient, and with a conjugation or negation that was only noted carried out (a copy, then).
at::Tensor resolved(const at::Tensor& input);

/// The memory of a contiguous tensor as bytes, in one dimension.
at::Tensor as_bytes(const at::Tensor& tensor);

/// The memory of a contiguous tensor in a type that backends reduce: pairs for complex numbers.
at::Tensor reducible(const at::Tensor& tensor);

/// Whether an average is divided before it is summed: the sum of 16 bit numbers is soon too large for them.
bool divides_first(const at::Tensor& tensor, ReduceOp op);

}  // namespace taas
