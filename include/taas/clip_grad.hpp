#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace taas {

struct ClipGradOptions {
  double norm_type = 2.0;           ///< of the p-norm; infinity: the largest absolute value
  bool error_if_nonfinite = false;  ///< throw InvalidArgument where the norm is infinite or not a number
};

/// Scales the gradients of `parameters` so that their norm, as if they were one vector, is `max_norm` at most: by
/// max_norm / (norm + 1e-6) where that is below 1. Returns what the norm was before, a scalar on the device of the
/// first gradient; 0 without gradients.
///
/// The operations are those of Python's torch.nn.utils.clip_grad_norm_ in the same order, so the same bits. It does not
/// wait for a GPU, except with `error_if_nonfinite`.
at::Tensor clip_grad_norm_(const std::vector<at::Tensor>& parameters, double max_norm,
                           const ClipGradOptions& options = {});

}  // namespace taas
