#pragma once

#include <ATen/core/TensorBody.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>

namespace taas {

/// Shared ownership of the node that adds to a parameter's gradient: of another kind from torch release to release.
using GradAccumulator = decltype(torch::autograd::impl::grad_accumulator(std::declval<const at::Tensor&>()));

}  // namespace taas
